package gbdt

// What a model read from a file may hold. The bounds keep a damaged or hostile file from taking
// memory, or time per forecast, that no useful model needs.
const (
	maxBytes = 32 << 20 // of a file
	maxDim   = 1 << 12  // features of a row
	maxNodes = 1 << 20  // splits of all trees of a forest
	maxPath  = 256      // splits from root to leaf of a forest
	maxValue = 1e30     // of a leaf, the base and a target: the sum of maxTrees of them is a float32
)
