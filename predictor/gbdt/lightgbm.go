package gbdt

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// lines reads a LightGBM file line by line.
type lines struct {
	rest []byte
	n    int // of the line read last, from 1
}

// next returns the next line that is not empty, without its end.
func (l *lines) next() (string, bool) {
	for len(l.rest) > 0 {
		line, rest, _ := bytes.Cut(l.rest, []byte("\n"))
		l.rest = rest
		l.n++
		if line = bytes.TrimRight(line, "\r"); len(line) > 0 {
			return string(line), true
		}
	}
	return "", false
}

func (l *lines) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: "+format, append([]any{l.n}, args...)...)
}

// lightGBM reads the text of LightGBM 4: lines of key=value, first about the model, then about each
// tree (GBDT::SaveModelToString and Tree::ToString in its source).
func lightGBM(data []byte, fields []string) (*Forest, error) {
	in := &lines{rest: data}
	f := &Forest{dim: len(fields), scale: 1}
	h, err := header(in, f)
	if err != nil {
		return nil, err
	}
	place, err := resolve(h.names, fields)
	if err != nil {
		return nil, err
	}
	if h.average {
		f.scale = 1 / float64(h.trees)
	}
	for i := range h.trees {
		t, err := readTree(in, i, i == h.trees-1)
		if err != nil {
			return nil, fmt.Errorf("tree %d: %w", i, err)
		}
		if err := f.plant(t.root, t.branches, t.leaves, place); err != nil {
			return nil, fmt.Errorf("tree %d: %w", i, err)
		}
	}
	return f, f.finish()
}

// heading is what stands before the first tree.
type heading struct {
	names   []string
	trees   int
	average bool // the forecast is the mean of the trees
}

// header reads up to and including the line Tree=0.
func header(in *lines, f *Forest) (heading, error) {
	var h heading
	var version, objective bool
	features := -1
	in.next() // "tree"
	for {
		line, ok := in.next()
		if !ok || line == "end of trees" {
			return h, in.errorf("the file ends before the first tree")
		}
		key, value, _ := strings.Cut(line, "=")
		var err error
		switch key {
		case "version":
			version = value == "v4"
		case "num_class", "num_tree_per_iteration":
			if value != "1" {
				err = fmt.Errorf("%q: models of several outputs are not read", clip(value))
			}
		case "max_feature_idx":
			features, err = strconv.Atoi(value)
			features++
		case "objective":
			objective = true
			f.link, err = lightGBMLink(value)
		case "average_output":
			h.average = true
		case "feature_names":
			if strings.Count(value, " ") >= maxDim {
				return h, in.errorf("feature_names: more than %d", maxDim)
			}
			h.names = strings.Fields(value)
		case "tree_sizes":
			h.trees = len(strings.Fields(value[:min(len(value), 16*maxTrees)]))
		case "label_index", "feature_infos", "monotone_constraints":
		case "Tree":
			switch {
			case !version:
				return h, in.errorf("no version=v4 before the first tree: only the text of LightGBM 4 is read")
			case !objective:
				return h, in.errorf("no objective before the first tree: what a custom objective's score means is not known")
			case len(h.names) == 0 || features != len(h.names):
				return h, in.errorf("%d feature_names for max_feature_idx=%d", len(h.names), features-1)
			case h.trees == 0 || h.trees > maxTrees:
				return h, in.errorf("%d tree_sizes: not 1..%d trees", h.trees, maxTrees)
			case value != "0":
				return h, in.errorf("Tree=%s comes first", clip(value))
			}
			return h, nil
		default:
			err = fmt.Errorf("unknown key")
		}
		if err != nil {
			return h, in.errorf("%s: %w", clip(key), err)
		}
	}
}

func lightGBMLink(value string) (link, error) {
	words := strings.Fields(value)
	if len(words) == 0 {
		return 0, fmt.Errorf("none: what the score means is not known")
	}
	switch words[0] {
	case "regression", "regression_l1", "huber", "fair", "quantile", "mape":
		if len(words) == 1 {
			return identity, nil
		}
		if words[0] != "mape" && words[1] == "sqrt" && len(words) == 2 {
			return square, nil
		}
	case "poisson", "gamma", "tweedie":
		if len(words) == 1 || words[0] == "tweedie" && strings.HasPrefix(words[1], "tweedie_variance_power:") && len(words) == 2 {
			return exponent, nil
		}
	}
	return 0, fmt.Errorf("%q: not one of regression, regression_l1, huber, fair, quantile, mape, poisson, gamma, tweedie", clip(value))
}

// textTree is one tree of a file.
type textTree struct {
	root     int
	branches []branch
	leaves   []float64
}

// treeText is a tree as far as its lines were read.
type treeText struct {
	textTree
	count     int // of leaves; 0 before it is known
	have      map[string]bool
	threshold []float64
	decision  []int
}

// readTree reads the lines of a tree and the line that follows: the next tree's first, or the end.
func readTree(in *lines, index int, last bool) (textTree, error) {
	t := treeText{have: make(map[string]bool, 16)}
	for {
		line, ok := in.next()
		if !ok {
			return textTree{}, in.errorf("the file ends within the tree")
		}
		key, value, _ := strings.Cut(line, "=")
		if key == "Tree" || line == "end of trees" {
			want := "Tree=" + strconv.Itoa(index+1)
			if last {
				want = "end of trees"
			}
			if line != want {
				return textTree{}, in.errorf("%q: tree_sizes promises %s", clip(line), want)
			}
			break
		}
		if err := t.set(key, value, len(in.rest)); err != nil {
			return textTree{}, in.errorf("%s: %w", clip(key), err)
		}
	}
	if err := t.finish(); err != nil {
		return textTree{}, in.errorf("%w", err)
	}
	return t.textTree, nil
}

// set takes one line; rest is the number of bytes after it.
func (t *treeText) set(key, value string, rest int) (err error) {
	switch {
	case t.have[key]:
		return errors.New("given twice")
	case t.count == 0 && key != "num_leaves":
		return errors.New("comes before num_leaves")
	}
	t.have[key] = true
	switch key {
	case "num_leaves":
		n, err := strconv.Atoi(value)
		switch {
		case err != nil:
			return fmt.Errorf("%q: not an integer", clip(value))
		case n < 1 || n > maxNodes:
			return fmt.Errorf("%d: not in 1..%d", n, maxNodes)
		case n > rest:
			return fmt.Errorf("%d: more than the file holds", n)
		}
		t.count, t.branches = n, make([]branch, n-1)
	case "num_cat":
		if value != "0" {
			return fmt.Errorf("%q: categorical splits are not read", clip(value))
		}
	case "is_linear":
		if value != "0" {
			return fmt.Errorf("%q: linear leaves are not read", clip(value))
		}
	case "split_feature":
		return each(value, t.branches, func(b *branch, v int) { b.feature = v })
	case "left_child":
		return each(value, t.branches, func(b *branch, v int) { b.left = v })
	case "right_child":
		return each(value, t.branches, func(b *branch, v int) { b.right = v })
	case "decision_type":
		t.decision = make([]int, t.count-1)
		return each(value, t.decision, func(d *int, v int) { *d = v })
	case "threshold": // infinite where it parts missing values from all others
		t.threshold, err = reals(value, t.count-1, math.Inf(1))
	case "leaf_value":
		t.leaves, err = reals(value, t.count, maxValue)
	case "split_gain", "leaf_weight", "leaf_count", "internal_value", "internal_weight", "internal_count", "shrinkage":
	default:
		return errors.New("unknown key")
	}
	return err
}

// finish checks that nothing is missing, and makes the splits.
func (t *treeText) finish() error {
	need := []string{"num_leaves", "leaf_value", "split_feature", "threshold", "decision_type", "left_child", "right_child"}
	if t.count == 1 {
		need = need[:2]
		t.root = ^0
	}
	for _, key := range need {
		if !t.have[key] {
			return fmt.Errorf("the tree above has no %s", key)
		}
	}
	for i := range t.branches {
		if err := t.branches[i].decide(t.decision[i], t.threshold[i]); err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
	}
	return nil
}

// decide sets where rows go (Tree::NumericalDecision): bit 1 of the decision says that missing values
// go left, bits 2 and 3 what is missing: nothing (NaN is zero), zeros and NaN, or NaN.
func (b *branch) decide(decision int, threshold float64) error {
	b.cut = floor32(threshold)
	b.missing = decision&2 == 0
	switch decision &^ 2 {
	case 0:
		b.missing = threshold < 0
	case 4:
		b.zero = true
	case 8:
	default:
		return fmt.Errorf("decision_type %d: not one of a numeric split", decision)
	}
	return nil
}

// floor32 is the largest float32 that is at most v: comparing a float32 with it is comparing it with v.
func floor32(v float64) float32 {
	f := float32(v)
	if float64(f) > v {
		return before(f)
	}
	return f
}

// each parses as many integers as dst has elements.
func each[T any](value string, dst []T, set func(*T, int)) error {
	i := 0
	for w := range strings.FieldsSeq(value) {
		if i == len(dst) {
			return fmt.Errorf("more than %d values", len(dst))
		}
		v, err := strconv.ParseInt(w, 10, 32)
		if err != nil {
			return fmt.Errorf("value %d: %q: not a 32-bit integer", i, clip(w))
		}
		set(&dst[i], int(v))
		i++
	}
	if i < len(dst) {
		return fmt.Errorf("%d values, not %d", i, len(dst))
	}
	return nil
}

// reals parses n numbers, none of them NaN or further than most from zero.
func reals(value string, n int, most float64) ([]float64, error) {
	out := make([]float64, 0, n)
	for w := range strings.FieldsSeq(value) {
		if len(out) == n {
			return nil, fmt.Errorf("more than %d values", n)
		}
		v, err := strconv.ParseFloat(w, 64)
		if err != nil || !(math.Abs(v) <= most) {
			return nil, fmt.Errorf("value %d: %q: not a number within %v of zero", len(out), clip(w), most)
		}
		out = append(out, v)
	}
	if len(out) < n {
		return nil, fmt.Errorf("%d values, not %d", len(out), n)
	}
	return out, nil
}
