#!/usr/bin/env python3
"""Writes golden.json, the truths that golden_test.go compares with.

Needs Python 3.10 or later, numpy and scipy (requirements.txt):

    python3 -m venv venv
    venv/bin/pip install -r requirements.txt
    venv/bin/python golden.py > golden.json

Every number comes from SciPy (or NumPy, where SciPy has no function of its
own); what is inverted or enumerated here only calls SciPy.
"""
import json
import sys

import numpy as np
import scipy
from scipy import stats

ALPHAS = [0.01, 0.012, 0.018, 0.05, 0.1]
rng = np.random.default_rng(20261121)


def walsh(d):
    i, j = np.triu_indices(len(d))
    return np.sort((d[i] + d[j]) / 2)


def interval(d, alpha):
    """The values that SciPy's exact two-sided test does not reject: bisection
    over the gaps between Walsh averages. None: unbounded."""
    w = walsh(d)
    edges = np.concatenate(([w[0] - 1], w, [w[-1] + 1]))
    probes = (edges[:-1] + edges[1:]) / 2
    accepted = lambda c: stats.wilcoxon(d - c, method="exact").pvalue > alpha
    if accepted(probes[0]) or accepted(probes[-1]):
        return [None, None]
    mid = len(probes) // 2
    first = bisect(0, mid, lambda i: not accepted(probes[i]))
    last = bisect(mid, len(probes) - 1, lambda i: accepted(probes[i]))
    return [w[first], w[last]]  # the outer edges of the gaps first+1 … last


def bisect(lo, hi, holds):
    """The largest i with holds(i), which holds at lo and not at hi."""
    while hi - lo > 1:
        m = (lo + hi) // 2
        if holds(m):
            lo = m
        else:
            hi = m
    return lo


def draw(kind, n):
    match kind:
        case "normal":
            return rng.normal(0.3, 1, n)
        case "cauchy":
            return rng.standard_cauchy(n) + 0.5
        case "skewed":
            return rng.lognormal(0, 1.5, n) - 1
    raise ValueError(kind)


def signed_rank_untied():
    for n in list(range(1, 31)) + [35, 40]:
        kind = ["normal", "cauchy", "skewed"][n % 3]
        d = draw(kind, n)
        yield {
            "d": d.tolist(),
            "p": stats.wilcoxon(d, method="exact").pvalue,
            "estimate": np.median(walsh(d)),
            "intervals": {str(a): interval(d, a) for a in ALPHAS},
        }


def signed_rank_tied():
    every = stats.PermutationMethod(n_resamples=2**14)  # more than there are: enumerate
    for n in range(2, 13):
        for _ in range(2):
            d = rng.integers(-3, 6, n) / 4.0
            if not d.any():
                continue
            r = stats.wilcoxon(d, zero_method="zsplit", method=every)
            yield {"d": d.tolist(), "p": r.pvalue, "estimate": np.median(walsh(d))}


def quantiles():
    for n in [1, 2, 5, 24, 101]:
        x = draw("cauchy", n)
        qs = [0, 0.01, 0.25, 0.5, 0.9, 0.99, 1]
        yield {"x": x.tolist(), "q": qs, "want": np.quantile(x, qs).tolist()}


def trends():
    for n in [2, 3, 5, 8, 10, 20, 33, 50]:
        x = draw("cauchy", n) + 0.05 * np.arange(n)
        yield trend(x, "exact")
    for n in [60, 120]:
        yield trend(draw("normal", n) + 0.005 * np.arange(n), "asymptotic")
    for n in [6, 10, 25, 80]:
        yield trend(rng.integers(0, 5, n).astype(float), "asymptotic")


def trend(x, method):
    t = np.arange(len(x))
    r = stats.kendalltau(t, x, method=method)
    slopes = [stats.theilslopes(x[c:])[0] for c in range(max(1, len(x) - 4))]
    return {"x": x.tolist(), "tau": r.statistic, "p": r.pvalue, "slopes": slopes}


def proportions():
    for k, n in [(0, 1), (1, 1), (0, 20), (1, 20), (3, 20), (20, 20), (7, 200), (199, 200), (61, 2000), (1000, 2000)]:
        for a in [0.01, 0.05, 0.1]:
            ci = stats.binomtest(k, n).proportion_ci(1 - a, method="exact")
            yield {"k": k, "n": n, "alpha": a, "lo": ci.low, "hi": ci.high}


def scalings():
    for n, x in [(8, [0, 1, 3, 5]), (12, [1, 2, 4, 8, 16]), (20, [0, 1])]:
        x = np.array(x, float)
        y = 100 + 37 * x + rng.standard_t(2, (n, len(x))) * 5
        slopes = np.array([stats.linregress(x, row).slope for row in y])
        yield {
            "x": x.tolist(),
            "y": y.tolist(),
            "slope": np.median(walsh(slopes)),
            "intervals": {str(a): interval(slopes, a) for a in ALPHAS},
        }


json.dump(
    {
        "scipy": scipy.__version__,
        "untied": list(signed_rank_untied()),
        "tied": list(signed_rank_tied()),
        "quantiles": list(quantiles()),
        "trends": list(trends()),
        "proportions": list(proportions()),
        "scalings": list(scalings()),
    },
    sys.stdout,
    indent=None,
    separators=(",", ":"),
)
print()
