#!/usr/bin/env python3
"""Makes the files in this folder: models of LightGBM and XGBoost with their own predictions, and
the losses that reference.json holds.

    pip install numpy lightgbm xgboost && python3 make.py

Made with LightGBM 4.7.0, XGBoost 3.2.0 and numpy 2.4.6. Rows of rows.csv are float32 in shortest
form; an empty field is missing. Column NAME of want.csv is what model NAME says of each row.
"""
import json
import math
import os

import lightgbm as lgb
import numpy as np
import xgboost as xgb

os.chdir(os.path.dirname(os.path.abspath(__file__)))
NAMES = ["queue", "tokens", "hit", "offset"]


def rows(n, seed):
    """Non-negative, heavy-tailed, in [0,1] and signed columns, with zeros and missing values."""
    r = np.random.default_rng(seed)
    x = np.stack([r.poisson(2, n), r.lognormal(3, 1, n), r.random(n), r.normal(0, 1, n)], 1)
    x[r.random(x.shape) < 0.1] = 0
    x[r.random(x.shape) < 0.08] = np.nan
    x = x.astype(np.float32)
    z = np.nan_to_num(x.astype(np.float64), nan=3.0)
    y = 0.05 + 0.1 * z[:, 0] + 0.01 * z[:, 1] * (1 - z[:, 2] / 4) + 0.2 * np.sin(3 * z[:, 3]) ** 2
    return x, y * np.exp(0.3 * r.normal(size=n))


def fixtures():
    x, y = rows(600, 1)
    t, _ = rows(150, 2)
    # values on the borders of splits, of zero and of float32
    t[0] = [3.4e38, -3.4e38, np.nan, -0.0]
    t[1] = [np.nan] * 4
    t[2] = [0, 0, 0, 0]
    t[3] = [1e-35, -1e-35, 2e-35, -2e-35]
    t[4] = [1e38, -1e38, 1e-38, -1e-38]
    t[5:30] = x[5:30]  # border values of XGBoost's cuts are values of rows
    want = {}

    def light(name, y=y, **p):
        p = dict(num_leaves=8, min_data_in_leaf=5, verbose=-1, deterministic=True, num_threads=1, seed=3) | p
        b = lgb.train(p, lgb.Dataset(x, y, feature_name=NAMES), 7)
        text = b.model_to_string()  # the parameters are not read; the end of them is
        head, tail = text.split("\nparameters:\n")[0], "\nend of parameters\n\npandas_categorical:null\n"
        with open(f"lightgbm_{name}.txt", "w") as f:
            f.write(head + "\nparameters:\n" + tail)
        want["lightgbm_" + name] = b.predict(t)

    light("regression", objective="regression")
    light("l1", objective="regression_l1")
    light("quantile", objective="quantile", alpha=0.9)
    light("sqrt", objective="regression", reg_sqrt=True)
    light("gamma", objective="gamma")
    light("tweedie", objective="tweedie")
    light("zero", objective="regression", zero_as_missing=True)
    light("none", objective="regression", use_missing=False)
    light("dart", objective="regression", boosting="dart", drop_rate=0.5)
    light("rf", objective="regression", boosting="rf", bagging_fraction=0.5, bagging_freq=1)

    # splits that part missing values from all others have an infinite threshold
    light("missing", objective="regression", y=9 + 5 * np.isnan(x[:, 1]) - 0.01 * np.nan_to_num(x[:, 1]))
    assert "inf" in open("lightgbm_missing.txt").read().split("Tree=0")[1]

    def xg(name, rounds=5, **p):
        p = dict(max_depth=3, nthread=1, seed=3) | p
        b = xgb.train(p, xgb.DMatrix(x, y, feature_names=NAMES), rounds)
        b.save_model(f"xgboost_{name}.json")
        want["xgboost_" + name] = b.predict(xgb.DMatrix(t, feature_names=NAMES))

    xg("squared", objective="reg:squarederror")
    xg("absolute", objective="reg:absoluteerror")
    xg("quantile", objective="reg:quantileerror", quantile_alpha=0.9)
    xg("log", objective="reg:squaredlogerror")
    xg("gamma", objective="reg:gamma")
    xg("pruned", objective="reg:squarederror", gamma=3, tree_method="exact")
    xg("dart", objective="reg:squarederror", booster="dart", rate_drop=0.4)
    xg("parallel", 2, objective="reg:squarederror", num_parallel_tree=3, subsample=0.5)
    xg("base", objective="reg:squarederror", base_score=0.25)

    with open("rows.csv", "w") as f:
        f.write(",".join(NAMES) + "\n")
        for row in t:
            f.write(",".join("" if np.isnan(v) else str(v) for v in row) + "\n")
    with open("want.csv", "w") as f:
        f.write(",".join(want) + "\n")
        for row in zip(*want.values()):
            f.write(",".join(f"{v:.9g}" for v in row) + "\n")

    # models that cannot be read
    r = np.random.default_rng(4)
    xc = np.stack([r.integers(0, 6, 400), r.random(400)], 1).astype(np.float32)
    yc = (xc[:, 0] % 3) + xc[:, 1]
    p = dict(num_leaves=4, verbose=-1, num_threads=1, objective="regression", cat_smooth=1)
    b = lgb.train(p, lgb.Dataset(xc, yc, feature_name=NAMES[:2], categorical_feature=[0]), 1)
    save_bad("lightgbm_categorical.txt", b.model_to_string())
    b = lgb.train(p | dict(linear_tree=True), lgb.Dataset(xc, yc, feature_name=NAMES[:2]), 2)
    save_bad("lightgbm_linear.txt", b.model_to_string())
    b = lgb.train(p | dict(objective="multiclass", num_class=3), lgb.Dataset(xc, xc[:, 0] % 3, feature_name=NAMES[:2]), 1)
    save_bad("lightgbm_multiclass.txt", b.model_to_string())
    d = xgb.DMatrix(xc, yc, feature_names=NAMES[:2], feature_types=["c", "q"], enable_categorical=True)
    xgb.train(dict(max_depth=2, max_cat_to_onehot=1), d, 1).save_model("bad/xgboost_categorical.json")
    d = xgb.DMatrix(xc, yc, feature_names=NAMES[:2])
    xgb.train(dict(max_depth=2, objective="reg:quantileerror", quantile_alpha=[0.5, 0.9]), d, 1).save_model("bad/xgboost_alphas.json")
    xgb.train(dict(booster="gblinear", updater="coord_descent", nthread=1, seed=3), d, 1).save_model("bad/xgboost_linear.json")
    xgb.train(dict(max_depth=2), xgb.DMatrix(xc, yc), 1).save_model("bad/xgboost_nameless.json")


def save_bad(name, text):
    with open("bad/" + name, "w") as f:
        f.write(text.split("\nparameters:\n")[0])


def uniforms(seed, n):
    """SplitMix64 (Steele, Lea and Flood, 2014): the top 24 bits of each output, as float32."""
    out, mask = np.empty(n, np.float32), (1 << 64) - 1
    for i in range(n):
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        z = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        out[i] = ((z ^ (z >> 31)) >> 40) / (1 << 24)
    return out


def friedman(n, seed):
    """Friedman's first function of five of six features; noise is the sum of 12 uniforms less 6."""
    u = uniforms(seed, 18 * n).reshape(n, 18)
    x, d = u[:, :6], u.astype(np.float64)
    noise = d[:, 6:].sum(1) - 6
    y = 10 * np.sin(math.pi * d[:, 0] * d[:, 1]) + 20 * (d[:, 2] - 0.5) ** 2 + 10 * d[:, 3] + 5 * d[:, 4]
    return x, y + noise


def reference():
    """Losses on unseen rows of 100 trees of 16 leaves at rate 0.1, on 2000 rows."""
    x, y = friedman(2000, 1)
    t, z = friedman(2000, 2)
    p = dict(num_leaves=16, max_depth=4, min_data_in_leaf=10, lambda_l2=1, max_bin=63, learning_rate=0.1,
             verbose=-1, num_threads=1, deterministic=True, seed=3)
    out = {}
    f = lgb.train(p | dict(objective="regression"), lgb.Dataset(x, y), 100).predict(t)
    out["rmse"] = float(np.sqrt(np.mean((f - z) ** 2)))
    for a in (0.5, 0.9):
        f = lgb.train(p | dict(objective="quantile", alpha=a), lgb.Dataset(x, y), 100).predict(t)
        out[f"pinball{a}"] = float(np.mean(np.maximum(a * (z - f), (a - 1) * (z - f))))
    f = xgb.train(dict(max_depth=4, eta=0.1, nthread=1, max_bin=63, min_child_weight=10), xgb.DMatrix(x, y), 100)
    out["xgboost_rmse"] = float(np.sqrt(np.mean((f.predict(xgb.DMatrix(t)) - z) ** 2)))
    with open("reference.json", "w") as f:
        json.dump(out, f, indent=1)
        f.write("\n")


os.makedirs("bad", exist_ok=True)
fixtures()
reference()
