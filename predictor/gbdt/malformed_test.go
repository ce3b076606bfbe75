package gbdt

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMalformedFiles: files that no forest can be made of, with what is said of them.
func TestMalformedFiles(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	light, xgb := read("lightgbm_quantile.txt"), read("xgboost_squared.json")
	swap := func(s, from, to string) string {
		out := strings.Replace(s, from, to, 1)
		if out == s {
			t.Fatalf("%q is not in the fixture", from)
		}
		return out
	}
	line := func(key string) string { // the first of a tree
		_, rest, _ := strings.Cut(light, "\n"+key+"=")
		value, _, _ := strings.Cut(rest, "\n")
		return key + "=" + value + "\n"
	}
	set := func(key, value string) string { return swap(light, line(key), key+"="+value+"\n") }
	feature := func(names string) string {
		return swap(light, "feature_names=queue tokens hit offset", "feature_names="+names)
	}
	for _, c := range []struct{ name, data, want string }{
		{"empty", "", "the file is empty"},
		{"foreign", "\x80\x04\x95pickle", `starts with "\x80\x04\x95pickle": neither LightGBM's text nor XGBoost's JSON`},
		{"UBJSON", "{L\x00\x00", "XGBoost's binary JSON is not read: save the model under a name that ends in .json"},
		{"JSON of others", `{"a":1}`, "version: []: not of XGBoost 1 to 3"},

		{"categorical", read("bad/lightgbm_categorical.txt"), `tree 0: line 14: num_cat: "2": categorical splits are not read`},
		{"linear leaves", read("bad/lightgbm_linear.txt"), `is_linear: "1": linear leaves are not read`},
		{"multi-class", read("bad/lightgbm_multiclass.txt"), `line 3: num_class: "3": models of several outputs are not read`},
		{"header only", "tree\nversion=v4\n", "line 2: the file ends before the first tree"},
		{"old", swap(light, "v4", "v2"), "line 12: no version=v4 before the first tree: only the text of LightGBM 4 is read"},
		{"objective", swap(light, "objective=quantile", "objective=lambdarank"), `line 7: objective: "lambdarank": not one of regression`},
		{"custom objective", swap(light, "objective=quantile\n", ""), "no objective before the first tree: what a custom objective's score means is not known"},
		{"option", swap(light, "objective=quantile", "objective=quantile sqrt logit"), `"quantile sqrt logit": not one of`},
		{"unknown key", swap(light, "label_index=0", "twist=1"), "line 5: twist: unknown key"},
		{"unknown name", feature("queue token hit offset"), `feature 1: "token": unknown name; did you mean "tokens"?`},
		{"name twice", feature("queue tokens hit hit"), `feature 3: "hit": named twice`},
		{"names missing", feature("queue tokens"), "2 feature_names for max_feature_idx=3"},
		{"more trees promised", swap(light, "tree_sizes=", "tree_sizes=1 "), `"end of trees": tree_sizes promises Tree=7`},
		{"one tree promised", swap(light, "tree_sizes=", "tree_sizes=1\nlabel_index="), `"Tree=1": tree_sizes promises end of trees`},
		{"fewer trees promised", swap(light, "\nTree=6\n", "\nTree=7\n"), `"Tree=7": tree_sizes promises Tree=6`},
		{"leaves", set("num_leaves", "0"), "line 13: num_leaves: 0: not in 1..1048576"},
		{"too many leaves", set("num_leaves", "99999999"), "num_leaves: 99999999: not in 1..1048576"},
		{"more leaves than bytes", set("num_leaves", "500000"), "num_leaves: 500000: more than the file holds"},
		{"no number", set("leaf_value", "1 2 3 x 5 6 7 8"), `leaf_value: value 3: "x": not a number within 1e+30 of zero`},
		{"NaN leaf", set("leaf_value", "1 2 3 nan 5 6 7 8"), `leaf_value: value 3: "nan": not a number within 1e+30 of zero`},
		{"huge leaf", set("leaf_value", "1 2 3 4 5 6 7 1e99"), `leaf_value: value 7: "1e99": not a number within 1e+30 of zero`},
		{"fewer values", set("leaf_value", "1 2 3"), "leaf_value: 3 values, not 8"},
		{"more values", set("threshold", "1 2 3 4 5 6 7 8"), "threshold: more than 7 values"},
		{"NaN cut", set("threshold", "1 2 3 4 5 inf nan"), `threshold: value 6: "nan": not a number`},
		{"wide index", set("left_child", "1 2 3 4 5 6 99999999999"), `left_child: value 6: "99999999999": not a 32-bit integer`},
		{"cycle", set("left_child", "0 0 0 0 0 0 0"), "tree 0: node 0: reached twice: children must form a tree"},
		{"child", set("left_child", "99 2 3 4 5 6 7"), "tree 0: node 99: not in 0..6"},
		{"feature", set("split_feature", "4 0 0 0 0 0 0"), "tree 0: node 0: feature 4: not in 0..3"},
		{"decision", set("decision_type", "3 10 10 10 10 10 10"), "node 0: decision_type 3: not one of a numeric split"},
		{"key twice", swap(light, "num_cat=0", "num_cat=0\nnum_cat=0"), "num_cat: given twice"},
		{"order", swap(light, "num_leaves=8\nnum_cat=0", "num_cat=0\nnum_leaves=8"), "num_cat: comes before num_leaves"},
		{"gains twice", swap(light, "\nthreshold=", "\nsplit_gain="), "split_gain: given twice"},
		{"unknown key of a tree", swap(light, "\nsplit_gain=", "\ngain="), "tree 0: line 16: gain: unknown key"},
		{"no children", swap(light, line("left_child"), ""), "the tree above has no left_child"},

		{"categorical", read("bad/xgboost_categorical.json"), "categorical splits are not read"},
		{"several alphas", read("bad/xgboost_alphas.json"), "num_target: 2: models of several outputs are not read"},
		{"gblinear", read("bad/xgboost_linear.json"), `learner.gradient_booster.name: "gblinear": not gbtree or dart`},
		{"no names", read("bad/xgboost_nameless.json"), "learner.feature_names: none: train with named features"},
		{"objective", swap(xgb, "reg:squarederror", "binary:logistic"), `learner.objective.name: "binary:logistic": not one of reg:squarederror`},
		{"version", swap(xgb, `"version":[3`, `"version":[4`), "version: [4 2 0]: not of XGBoost 1 to 3"},
		{"base", swap(xgb, `"base_score":"[`, `"base_score":"[1,`), "not one number within 1e+30 of zero"},
		{"NaN base", swap(xgb, `"base_score":"[`, `"base_score":"nan","x":"[`), `base_score: "nan": not one number`},
		{"class", swap(xgb, `"tree_info":[0,0`, `"tree_info":[0,1`), "tree_info[1]: class 1: models of several outputs are not read"},
		{"classes", swap(xgb, `"num_class":"0"`, `"num_class":"3"`), "num_class: 3: models of several outputs are not read"},
		{"vector leaves", swap(xgb, `"size_leaf_vector":"1"`, `"size_leaf_vector":"2"`), "tree 0: size_leaf_vector 2: models of several outputs are not read"},
		{"unknown name", swap(xgb, `"queue"`, `"queues"`), `learner.feature_names: feature 0: "queues": unknown name; did you mean "queue"?`},
		{"number of names", swap(xgb, `"queue",`, ``), "learner.feature_names: 3 for num_feature 4"},
		{"nodes", swap(xgb, `"left_children":[1,`, `"left_children":[1,1,`), "tree 0: num_nodes 15, but 16 left_children, 15 right_children"},
		{"child", swap(xgb, `"left_children":[1,`, `"left_children":[99,`), "tree 0: node 0: child 99: not in 0..14"},
		{"negative child", swap(xgb, `"right_children":[2,`, `"right_children":[-1,`), "tree 0: node 0: child -1: not in 0..14"},
		{"cycle", swap(xgb, `"left_children":[1,`, `"left_children":[0,`), "tree 0: node 0: reached twice"},
		{"feature", swap(xgb, `"split_indices":[`, `"split_indices":[4,-1,4,4,4,4,4,4,4,4,4,4,4,4,4],"x":[`), "tree 0: node 0: feature 4: not in 0..3"},
		{"NaN", swap(xgb, `"split_conditions":[`, `"split_conditions":[NaN,`), "cannot parse as XGBoost's JSON"},
		{"wide number", swap(xgb, `"split_conditions":[`, `"split_conditions":[1e99,`), "cannot parse as XGBoost's JSON"},
		{"twice", swap(xgb, `"version":`, `"version":[3,0,0],"version":`), "cannot parse as XGBoost's JSON"},
		{"dart weights", swap(read("xgboost_dart.json"), `"weight_drop":[`, `"weight_drop":[1,`), "learner.gradient_booster.weight_drop: 6 for 5 trees"},
		{"dart without weights", swap(read("xgboost_dart.json"), `"weight_drop":[`, `"drop":[`), "learner.gradient_booster.weight_drop: 0 for 5 trees"},
	} {
		_, err := Import(strings.NewReader(c.data), fixtureFields)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.name, err, c.want)
		}
	}
}

// TestTruncatedFiles: no beginning of a file passes for the whole.
func TestTruncatedFiles(t *testing.T) {
	for _, name := range []string{"lightgbm_quantile.txt", "xgboost_squared.json"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		end := len(data) - 1 // the closing brace
		if i := bytes.Index(data, []byte("end of trees")); i > 0 {
			end = i + len("end of trees") - 1
		}
		for n := 0; n <= end; n += 1 + n%23 {
			if _, err := Import(bytes.NewReader(data[:n]), fixtureFields); err == nil {
				t.Errorf("%s: %d of %d bytes were read as a model", name, n, len(data))
			}
		}
	}
}

// TestHugeFiles: a file without end is left at the limit.
func TestHugeFiles(t *testing.T) {
	if _, err := Import(endless{}, fixtureFields); err == nil || err.Error() != "the file is larger than 33554432 bytes" {
		t.Error(err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

var _ io.Reader = endless{}

// FuzzLightGBM: whatever the text, Import gives an error or a forest whose forecasts are finite.
func FuzzLightGBM(f *testing.F) {
	fuzzImport(f, "lightgbm_*.txt", "tree\n")
}

// FuzzXGBoost is FuzzLightGBM for JSON.
func FuzzXGBoost(f *testing.F) {
	fuzzImport(f, "xgboost_*.json", "{")
}

func fuzzImport(f *testing.F, glob, start string) {
	for _, dir := range []string{"testdata", "testdata/bad"} {
		files, err := filepath.Glob(filepath.Join(dir, glob))
		if err != nil || len(files) == 0 {
			f.Fatal(files, err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	rows := [][]float32{{nan(), nan(), nan(), nan(), nan(), nan()}, {0, 0, 0, 0, 0, 0}, {1, -1, 30, 2, 5, .5}}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !bytes.HasPrefix(data, []byte(start)) {
			t.Skip()
		}
		m, err := Import(bytes.NewReader(data), fixtureFields)
		if err != nil {
			return
		}
		finite(t, m, rows)
	})
}

// finite checks that a model that was read answers, alike by row and by column.
func finite(t *testing.T, m Regressor, rows [][]float32) {
	var c Columns
	c.Fill(len(rows), func(r int) []float32 { return rows[r] })
	dst := make([]float32, len(rows))
	m.PredictColumns(dst, &c)
	for r, x := range rows {
		v := m.Predict(x)
		if d := float64(dst[r]) - v; v-v != 0 || d != d || dst[r]-dst[r] != 0 {
			t.Fatalf("row %d: %v, by columns %v", r, v, dst[r])
		}
	}
}
