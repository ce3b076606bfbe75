// Package gbdt trains and evaluates gradient-boosted trees: histogram-based, deterministic, with
// missing values, row weights, monotone constraints, and squared or pinball loss.
//
// Trees are oblivious (one split per level, the same for all nodes of it; Dorogush, Ershov and
// Gulin, "CatBoost: gradient boosting with categorical features support", 2018): a tree of depth d
// is d comparisons and a table of 2^d leaves, evaluated for a whole batch column by column without
// branches. Histograms follow Ke et al., "LightGBM: A Highly Efficient Gradient Boosting Decision
// Tree", 2017; leaves of the pinball loss are weighted quantiles of their residuals, after Friedman,
// "Greedy Function Approximation: A Gradient Boosting Machine", 2001.
//
// Models are written as JSON with a version and a checksum (see [Read]). [Import] reads ensembles that
// LightGBM and XGBoost saved; their trees branch node by node, and each row takes the branch that the
// library itself makes it take.
//
// Training is pure and takes no clock and no random source: equal rows give equal trees.
package gbdt
