package gbdt

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// fixtureFields are the fields of a router whose rows hold more than the fixtures' models read, in
// another order.
var fixtureFields = []string{"kv", "offset", "tokens", "queue", "free", "hit"}

func readCSV(t testing.TB, name string) (head []string, rows [][]float64) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range all[1:] {
		row := make([]float64, len(line))
		for i, s := range line {
			row[i] = math.NaN()
			if s != "" {
				if row[i], err = strconv.ParseFloat(s, 64); err != nil {
					t.Fatal(err)
				}
			}
		}
		rows = append(rows, row)
	}
	return all[0], rows
}

func importFile(t testing.TB, name string) (*Forest, error) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return Import(f, fixtureFields)
}

// fixtureRows are the rows of the fixtures as vectors of fixtureFields.
func fixtureRows(t testing.TB) [][]float32 {
	t.Helper()
	head, rows := readCSV(t, "rows.csv")
	place, err := resolve(head, fixtureFields)
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]float32, len(rows))
	for r, row := range rows {
		x := []float32{nan(), nan(), nan(), nan(), nan(), nan()}
		for i, v := range row {
			x[place[i]] = float32(v)
		}
		out[r] = x
	}
	return out
}

// TestImportedModelsSayWhatTheirLibrariesSay: every row of the fixtures, missing values and values on
// the borders of splits among them, gets the prediction that the library which made the model gave.
func TestImportedModelsSayWhatTheirLibrariesSay(t *testing.T) {
	names, want := readCSV(t, "want.csv")
	xs := fixtureRows(t)
	if len(names) < 15 || len(want) != len(xs) || len(xs) < 100 {
		t.Fatalf("%d models, %d rows of %d", len(names), len(xs), len(want))
	}
	var cols Columns
	cols.Fill(len(xs), func(r int) []float32 { return xs[r] })
	for i, name := range names {
		file := name + ".txt"
		if strings.HasPrefix(name, "xgboost") {
			file = name + ".json"
		}
		f, err := importFile(t, file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if f.Dim() != len(fixtureFields) || f.Trees() < 5 || f.Used(0) || f.Used(4) || !f.Used(2) {
			t.Errorf("%s: %d features, %d trees, used %v %v %v", file, f.Dim(), f.Trees(), f.Used(0), f.Used(4), f.Used(2))
		}
		batch := make([]float32, len(xs))
		f.PredictColumns(batch, &cols)
		for r, x := range xs {
			w := want[r][i]
			if got := f.Predict(x); !(math.Abs(got-w) <= 1e-6*math.Abs(w)) {
				t.Errorf("%s, row %d %v: %v, not %v", file, r, x, got, w)
			}
			if got := float64(batch[r]); !(math.Abs(got-w) <= 2e-6*math.Abs(w)) {
				t.Errorf("%s, row %d %v by columns: %v, not %v", file, r, x, got, w)
			}
		}
		if n := testing.AllocsPerRun(10, func() { f.Predict(xs[0]); f.PredictColumns(batch, &cols) }); n != 0 {
			t.Errorf("%s: %v allocations", file, n)
		}
	}
}
