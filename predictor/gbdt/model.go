package gbdt

// Regressor is what [Model] and [Forest] have in common: an immutable ensemble, safe for concurrent
// use (each goroutine with its own [Columns]).
type Regressor interface {
	// Dim returns the number of features of a row.
	Dim() int
	// Trees returns the number of trees.
	Trees() int
	// Used reports whether any tree reads the feature.
	Used(feature int) bool
	// Predict returns the forecast for one row of Dim features; NaN is a missing value.
	Predict(x []float32) float64
	// PredictColumns sets dst[r] to the forecast for row r of the batch, without allocation.
	PredictColumns(dst []float32, c *Columns)
}

// Model is a trained ensemble. It is immutable and safe for concurrent use.
type Model struct {
	dim   int
	base  float64
	trees []tree
}

// tree is an oblivious tree: bit k of a row's leaf is the outcome of level k.
type tree struct {
	levels []level
	leaves []float32
}

// level sends a row to the right when its feature is above cut, missing values where missing says.
type level struct {
	feature int
	cut     float32
	missing bool
	key     int64 // order(cut)
}

// Dim returns the number of features the model reads.
func (m *Model) Dim() int { return m.dim }

// Trees returns the number of trees.
func (m *Model) Trees() int { return len(m.trees) }

// Predict returns the forecast for one row of Dim features.
func (m *Model) Predict(x []float32) float64 {
	sum := m.base
	for i := range m.trees {
		t := &m.trees[i]
		leaf := 0
		for k, l := range t.levels {
			v := x[l.feature]
			if v > l.cut || (v != v && l.missing) {
				leaf |= 1 << k
			}
		}
		sum += float64(t.leaves[leaf])
	}
	return sum
}

// Used reports whether any tree reads the feature.
func (m *Model) Used(feature int) bool {
	for i := range m.trees {
		for _, l := range m.trees[i].levels {
			if l.feature == feature {
				return true
			}
		}
	}
	return false
}

var _ Regressor = (*Model)(nil)
