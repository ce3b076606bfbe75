package gbdt

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func written1(t testing.TB, m *Model) []byte {
	t.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestWrittenModelsReadBackTheSame: bit for bit, whatever was trained, also after re-indentation and
// as part of another document.
func TestWrittenModelsReadBackTheSame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
		tab := friedman(1+rng.IntN(120), 1, rng)
		for i := range tab.x {
			if rng.IntN(10) == 0 {
				tab.x[i] = nan()
			}
		}
		m, err := Train(tab, Params{Trees: 1 + rng.IntN(5), Depth: 1 + rng.IntN(8), MinWeight: 1, Quantile: []float64{0, .9}[rng.IntN(2)]})
		if err != nil {
			rt.Fatal(err)
		}
		data := written1(t, m)
		var indented bytes.Buffer
		if err := json.Indent(&indented, data, "", "\t"); err != nil {
			rt.Fatal(err)
		}
		for _, text := range [][]byte{data, indented.Bytes()} {
			got, err := Read(bytes.NewReader(text))
			if err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(m, got, cmp.AllowUnexported(Model{}, tree{}, level{})); diff != "" {
				rt.Fatal(diff)
			}
		}
		var part struct{ M *Model }
		if err := json.Unmarshal([]byte(`{"M":`+string(data)+`}`), &part); err != nil || !cmp.Equal(m, part.M, cmp.AllowUnexported(Model{}, tree{}, level{})) {
			rt.Fatalf("as part of a document: %v", err)
		}
	})
}

func smallModel() *Model {
	return &Model{dim: 2, base: 0.5, trees: []tree{{levels: []level{{feature: 1, cut: 0.25, missing: true, key: int64(order(0.25))}}, leaves: []float32{-1, 1}}}}
}

const smallText = `{"format":"presage-gbdt","version":1,"dim":2,"base":0.5,"trees":[{"feature":[1],"cut":[0.25],"missing":[true],"leaves":[-1,1]}],"sum":"SUM"}`

// TestWrittenForm pins the format: a change of it, or of the hash, needs a new version.
func TestWrittenForm(t *testing.T) {
	const want = "71bcad656c8c90ac"
	if got := string(written1(t, smallModel())); got != strings.Replace(smallText, "SUM", want, 1) {
		t.Error(got)
	}
}

func TestDamagedModelsAreRefused(t *testing.T) {
	good := string(written1(t, smallModel()))
	for _, c := range []struct{ from, to, want string }{
		{good, "", "the file is empty"},
		{good, "[]", "cannot parse the model"},
		{good, good[:len(good)/2], "cannot parse the model"},
		{good, good + good, "cannot parse the model"},
		{`"presage-gbdt"`, `"other"`, `format: "other": not "presage-gbdt"`},
		{`"version":1`, `"version":2`, "version: 2: not 1"},
		{`"dim":2`, `"dim":0`, "dim: 0: not in 1..4096"},
		{`"dim":2`, `"dim":2,"dim":2`, "duplicate"},
		{`"dim":2`, `"Dim":2`, "unknown"},
		{`"dim":2`, `"dim":1`, "trees[0].feature[0]: 1: not in 0..0"},
		{`"dim":2`, `"dim":3`, "the model was changed or damaged"},
		{`"base":0.5`, `"base":1e31`, "base: 1e+31: not within 1e+30 of zero"},
		{`"base":0.5`, `"base":0.51`, "the model was changed or damaged"},
		{`[1],"cut"`, `[],"cut"`, "trees[0].feature: 0 levels: not in 1..8"},
		{`[1],"cut"`, `[1,1,1,1,1,1,1,1,1],"cut"`, "trees[0].feature: 9 levels: not in 1..8"},
		{`[0.25]`, `[0.25,1]`, "trees[0].cut: 2 values for 1 levels"},
		{`[0.25]`, `[1e99]`, "cannot parse the model"},
		{`[true]`, `[]`, "trees[0].missing: 0 values for 1 levels"},
		{`[true]`, `[false]`, "the model was changed or damaged"},
		{`[-1,1]`, `[-1,1,2]`, "trees[0].leaves: 3 values for 1 levels, not 2"},
		{`[-1,1]`, `[-1,2e30]`, "trees[0].leaves[1]: 2e+30: not within 1e+30 of zero"},
		{`[-1,1]`, `[1,-1]`, "the model was changed or damaged"},
		{`"sum":"`, `"sum":"0`, "the model was changed or damaged"},
	} {
		bad := strings.Replace(good, c.from, c.to, 1)
		if bad == good {
			t.Fatalf("%q is not in %s", c.from, good)
		}
		m, err := Read(strings.NewReader(bad))
		if err == nil || m != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", bad, err, c.want)
		}
	}
	m := smallModel()
	if err := m.UnmarshalJSON([]byte("{}")); err == nil || m.Trees() != 1 {
		t.Errorf("a failed read changed the model: %v", err)
	}
	if _, err := Read(endless{}); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Error(err)
	}
	many := strings.Replace(good, `"trees":[`, `"trees":[`+strings.Repeat(`{},`, maxTrees), 1)
	if _, err := Read(strings.NewReader(many)); err == nil || !strings.Contains(err.Error(), "more than 4096") {
		t.Error(err)
	}
}

// FuzzRead: whatever the text, Read gives an error or a model that writes itself the same way again.
func FuzzRead(f *testing.F) {
	f.Add(written1(f, smallModel()))
	m, err := Train(friedman(60, 1, rand.New(rand.NewPCG(1, 1))), Params{Trees: 3, Depth: 2, MinWeight: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(written1(f, m))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		text := written1(t, m)
		again, err := Read(bytes.NewReader(text))
		if err != nil || !bytes.Equal(written1(t, again), text) {
			t.Fatalf("%s: %v", text, err)
		}
		rows := [][]float32{make([]float32, m.Dim()), make([]float32, m.Dim())}
		for i := range rows[1] {
			rows[1][i] = nan()
		}
		finite(t, m, rows)
	})
}
