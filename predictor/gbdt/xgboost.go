package gbdt

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// xgbFile is what decides forecasts in XGBoost's JSON (doc/model.schema in its source); the rest of
// it, statistics of the training, is skipped.
type xgbFile struct {
	Version []int `json:"version"`
	Learner struct {
		Names     []string `json:"feature_names"`
		Objective struct {
			Name string `json:"name"`
		} `json:"objective"`
		Param struct {
			BaseScore string `json:"base_score"`
			Features  int    `json:"num_feature,string"`
			Classes   int    `json:"num_class,string"`
			Targets   *int   `json:"num_target,string"`
		} `json:"learner_model_param"`
		Booster xgbBooster `json:"gradient_booster"`
	} `json:"learner"`
}

type xgbBooster struct {
	Name       string      `json:"name"`
	Model      *xgbTrees   `json:"model"`
	GBTree     *xgbBooster `json:"gbtree"`      // of dart
	WeightDrop []float32   `json:"weight_drop"` // of dart: a factor for each tree
}

type xgbTrees struct {
	Trees treeList `json:"trees"`
	Info  []int    `json:"tree_info"`
	Cats  struct {
		Enc jsontext.Value `json:"enc"`
	} `json:"cats"`
}

// treeList takes trees one by one, so that no more is held of them than their splits.
type treeList []textTree

// UnmarshalJSONFrom reads an array of trees.
func (l *treeList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	tok, err := dec.ReadToken()
	if err != nil {
		return err
	}
	if tok.Kind() != '[' {
		return fmt.Errorf("trees: not an array")
	}
	nodes := 0
	for i := 0; dec.PeekKind() != ']'; i++ {
		if i == maxTrees {
			return fmt.Errorf("more than %d trees", maxTrees)
		}
		var x xgbTree
		if err := json.UnmarshalDecode(dec, &x); err != nil {
			return err
		}
		t, err := x.tree()
		if err != nil {
			return fmt.Errorf("tree %d: %w", i, err)
		}
		if nodes += len(t.branches); nodes > 2*maxNodes {
			return fmt.Errorf("tree %d: more than %d nodes in all trees", i, 2*maxNodes)
		}
		*l = append(*l, t)
	}
	_, err = dec.ReadToken()
	return err
}

type xgbTree struct {
	Left       []int32        `json:"left_children"`
	Right      []int32        `json:"right_children"`
	Feature    []int32        `json:"split_indices"`
	Condition  []float32      `json:"split_conditions"` // of a leaf: its value
	Default    jsontext.Value `json:"default_left"`     // 0 and 1, or booleans before version 2
	Kind       []int8         `json:"split_type"`
	Categories []int32        `json:"categories_nodes"`
	Param      struct {
		Nodes  int `json:"num_nodes,string"`
		Vector int `json:"size_leaf_vector,string"`
	} `json:"tree_param"`
}

// tree checks one tree's shape. A node whose left child is -1 is a leaf.
func (x *xgbTree) tree() (textTree, error) {
	var t textTree
	n := len(x.Left)
	defaultLeft, err := flags(x.Default)
	switch {
	case err != nil:
		return t, fmt.Errorf("default_left: %w", err)
	case n == 0:
		return t, errors.New("no nodes")
	case x.Param.Nodes != n || len(x.Right) != n || len(x.Feature) != n || len(x.Condition) != n || len(defaultLeft) != n:
		return t, fmt.Errorf("num_nodes %d, but %d left_children, %d right_children, %d split_indices, %d split_conditions, %d default_left",
			x.Param.Nodes, n, len(x.Right), len(x.Feature), len(x.Condition), len(defaultLeft))
	case x.Param.Vector > 1:
		return t, fmt.Errorf("size_leaf_vector %d: models of several outputs are not read", x.Param.Vector)
	case len(x.Categories) > 0:
		return t, fmt.Errorf("node %d: categorical splits are not read", x.Categories[0])
	}
	for i, k := range x.Kind {
		if k != 0 {
			return t, fmt.Errorf("node %d: split_type %d: only numeric splits are read", i, k)
		}
	}
	t.branches, t.leaves = make([]branch, n), make([]float64, n)
	child := func(c int32) (int, error) {
		if c < 0 || int(c) >= n {
			return 0, fmt.Errorf("child %d: not in 0..%d", c, n-1)
		}
		if x.Left[c] == -1 {
			return ^int(c), nil
		}
		return int(c), nil
	}
	for i := range n {
		c := x.Condition[i]
		t.leaves[i] = float64(c)
		if x.Left[i] == -1 {
			continue
		}
		b := &t.branches[i]
		// rows with a value below the condition go left
		*b = branch{feature: int(x.Feature[i]), cut: before(c), missing: !defaultLeft[i]}
		if b.left, err = child(x.Left[i]); err == nil {
			b.right, err = child(x.Right[i])
		}
		if err != nil {
			return t, fmt.Errorf("node %d: %w", i, err)
		}
	}
	t.root, err = child(0)
	return t, err
}

// before is the largest float32 below v: a float32 is below v where it is at most before(v).
func before(v float32) float32 { return math.Nextafter32(v, float32(math.Inf(-1))) }

func flags(v jsontext.Value) ([]bool, error) {
	if bytes.ContainsAny(v, "tf") {
		var out []bool
		return out, json.Unmarshal(v, &out)
	}
	var ints []int8
	if len(v) > 0 {
		if err := json.Unmarshal(v, &ints); err != nil {
			return nil, err
		}
	}
	out := make([]bool, len(ints))
	for i, n := range ints {
		out[i] = n != 0
	}
	return out, nil
}

// xgboost reads the JSON of XGBoost.
func xgboost(data []byte, fields []string) (*Forest, error) {
	var x xgbFile
	if err := json.Unmarshal(data, &x); err != nil {
		return nil, fmt.Errorf("cannot parse as XGBoost's JSON: %w", err)
	}
	l := &x.Learner
	f := &Forest{dim: len(fields), scale: 1, narrow: true}
	b, weights := &l.Booster, []float32(nil)
	if b.Name == "dart" && b.GBTree != nil {
		weights = b.WeightDrop
		b = b.GBTree
	}
	switch {
	case len(x.Version) != 3 || x.Version[0] < 1 || x.Version[0] > 3:
		return nil, fmt.Errorf("version: %v: not of XGBoost 1 to 3", x.Version)
	case b.Name != "gbtree":
		return nil, fmt.Errorf("learner.gradient_booster.name: %q: not gbtree or dart", clip(b.Name))
	case b.Model == nil || len(b.Model.Trees) == 0:
		return nil, errors.New("learner.gradient_booster.model: no trees")
	case l.Param.Classes > 1:
		return nil, fmt.Errorf("learner.learner_model_param.num_class: %d: models of several outputs are not read", l.Param.Classes)
	case l.Param.Targets != nil && *l.Param.Targets != 1:
		return nil, fmt.Errorf("learner.learner_model_param.num_target: %d: models of several outputs are not read", *l.Param.Targets)
	case len(l.Names) == 0:
		return nil, errors.New("learner.feature_names: none: train with named features")
	case len(l.Names) > maxDim || len(l.Names) != l.Param.Features:
		return nil, fmt.Errorf("learner.feature_names: %d for num_feature %d; at most %d", len(l.Names), l.Param.Features, maxDim)
	case len(b.Model.Cats.Enc) > 0 && string(bytes.Join(bytes.Fields(b.Model.Cats.Enc), nil)) != "[]":
		return nil, errors.New("learner.gradient_booster.model.cats: categories are not read")
	case weights != nil && len(weights) != len(b.Model.Trees) || l.Booster.Name == "dart" && weights == nil:
		return nil, fmt.Errorf("learner.gradient_booster.weight_drop: %d for %d trees", len(weights), len(b.Model.Trees))
	}
	for i, c := range b.Model.Info {
		if c != 0 {
			return nil, fmt.Errorf("learner.gradient_booster.model.tree_info[%d]: class %d: models of several outputs are not read", i, c)
		}
	}
	if err := f.xgboostLink(l.Objective.Name, l.Param.BaseScore); err != nil {
		return nil, err
	}
	place, err := resolve(l.Names, fields)
	if err != nil {
		return nil, fmt.Errorf("learner.feature_names: %w", err)
	}
	for i, t := range b.Model.Trees {
		for j := range t.leaves {
			if weights != nil {
				t.leaves[j] = float64(weights[i] * float32(t.leaves[j]))
			}
		}
		if err := f.plant(t.root, t.branches, t.leaves, place); err != nil {
			return nil, fmt.Errorf("tree %d: %w", i, err)
		}
	}
	return f, f.finish()
}

// xgboostLink sets what scores mean and where they start: base_score is a forecast.
func (f *Forest) xgboostLink(objective, base string) error {
	switch objective {
	case "reg:squarederror", "reg:linear", "reg:squaredlogerror", "reg:absoluteerror", "reg:quantileerror", "reg:pseudohubererror":
		f.link = identity
	case "reg:gamma", "reg:tweedie", "count:poisson":
		f.link = exponent
	default:
		return fmt.Errorf("learner.objective.name: %q: not one of reg:squarederror, reg:squaredlogerror, reg:absoluteerror, "+
			"reg:quantileerror, reg:pseudohubererror, reg:gamma, reg:tweedie, count:poisson", clip(objective))
	}
	inner, bracketed := strings.CutPrefix(base, "[") // since 3.1
	if bracketed {
		inner = strings.TrimSuffix(inner, "]")
	}
	v, err := strconv.ParseFloat(inner, 32)
	if err != nil || !(math.Abs(v) <= maxValue) {
		return fmt.Errorf("learner.learner_model_param.base_score: %q: not one number within %v of zero", clip(base), maxValue)
	}
	if f.link == exponent {
		if v <= 0 {
			return fmt.Errorf("learner.learner_model_param.base_score: %v: not positive, as %s needs", v, objective)
		}
		v = math.Log(v)
	}
	f.base = v
	return nil
}
