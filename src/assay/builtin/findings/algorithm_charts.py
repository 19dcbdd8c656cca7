"""Charts of reinforcement learning: learning curves, episodes needed, performance profiles, probabilities of improvement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.builtin.findings.algorithm_summary import AlgorithmSummary, SeedComparison
from assay.plugin.charts import (
    Chart,
    Spec,
    agent_colour,
    between,
    build_name_axis,
    build_tips,
    dot,
    draw,
    frame,
    nominal,
    numeric,
    whisker,
)
from assay.stats.learning_curve import smooth
from assay.stats.run_scores import build_band, estimate_profile

_POINTS = 120
"""Points of a curve: more than a screen tells apart."""
_LEGEND = {"title": None, "orient": "top", "symbolOpacity": 1}


def build_charts(algorithms: Sequence[AlgorithmSummary], duels: Sequence[SeedComparison]) -> list[Chart]:
    trained = [algorithm for algorithm in algorithms if algorithm.trained]
    charts = []
    if trained:
        charts += [
            Chart("learning_curves", learning_curves(trained)),
            Chart("episodes_to_threshold", episodes_needed(algorithms)),
            Chart("performance_profile", performance_profile(algorithms)),
        ]
    if duels:
        charts.append(Chart("probability_of_improvement", improvement(duels)))
    return charts


def _name(algorithm: AlgorithmSummary) -> str:
    return f"{algorithm.name} (simulated)" if algorithm.is_simulated else algorithm.name


def learning_curves(algorithms: Sequence[AlgorithmSummary]) -> Spec:
    """Trailing means; the line is the interquartile mean over seeds that were trained, the band its 95 % interval."""
    rows: list[dict[str, Any]] = []
    threads: list[dict[str, Any]] = []
    for algorithm in algorithms:
        window = algorithm.window
        shortest = min(len(seed.rewards) for seed in algorithm.trained)
        curves = smooth([seed.rewards[:shortest] for seed in algorithm.trained], window)
        places = np.unique(np.linspace(0, curves.shape[1] - 1, _POINTS).astype(int))
        middle, low, high = build_band(curves[:, places])
        episodes = (places + shortest - curves.shape[1] + 1).tolist()
        columns = zip(episodes, middle.tolist(), low.tolist(), high.tolist(), strict=True)
        rows += [
            {"trial": _name(algorithm), "episode": e, "value": round(v, 4), "low": round(lo, 4), "high": round(hi, 4)}
            for e, v, lo, hi in columns
        ]  # fmt: skip
        threads += [
            {"trial": _name(algorithm), "seed": f"{algorithm.name} {seed.seed}", "episode": e, "value": round(v, 4)}
            for seed, curve in zip(algorithm.trained, curves[:, places].tolist(), strict=True)
            for e, v in zip(episodes, curve, strict=True)
        ]  # fmt: skip
    x = numeric(
        "episode", title="episode", scale={"nice": False, "zero": True}, axis={"tickCount": 6, "grid": False}
    )
    y = numeric("value", title="reward (1 is the highest)", scale={"domain": [0, 1]}, axis={"tickCount": 5})
    colour = agent_colour(_LEGEND)
    threshold = algorithms[0].threshold
    tips = [*build_tips(trial="algorithm"), {"field": "episode"}, *build_tips(value="reward")]
    return {
        **frame(
            "Learning curves", "interquartile mean over seeds with 95 % bootstrap band; thin lines are seeds"
        ),
        "height": 320,
        "layer": [
            draw([{"value": threshold}], {"type": "rule", "style": "edge"}, {"y": {**y, "field": "value"}}),
            draw(
                [{"value": threshold, "text": "converged", "episode": 0}],
                {"type": "text", "style": "note", "align": "left", "dx": 4, "dy": -7},
                {"y": y, "x": x, "text": {"field": "text"}},
            ),
            draw(
                threads,
                {"type": "line", "strokeWidth": 1, "opacity": 0.45},
                {"x": x, "y": y, "color": colour, "detail": {"field": "seed"}},
            ),
            draw(
                rows,
                {"type": "area", "opacity": 0.16},
                {"x": x, **between("y", y), "color": colour},
            ),
            draw(
                rows, {"type": "line", "strokeWidth": 2.6}, {"x": x, "y": y, "color": colour, "tooltip": tips}
            ),
        ],
    }


def episodes_needed(algorithms: Sequence[AlgorithmSummary]) -> Spec:
    """Every seed is a point; one that did not converge stands at the end of the budget as a triangle."""
    most = max(algorithm.episodes for algorithm in algorithms)
    rows = [
        {
            "trial": _name(algorithm),
            "value": most if math.isinf(wait) else wait,
            "outcome": f"more than {algorithm.episodes}" if math.isinf(wait) else "converged",
            "spread": number % 5 - 2,
        }
        for algorithm in algorithms
        for number, wait in enumerate(algorithm.waits)
    ]
    medians = [
        {"trial": _name(a), "value": min(a.needed.value, most), "low": min(a.needed.low, most), "high": min(a.needed.high, most)}
        for a in algorithms
    ]  # fmt: skip
    x = numeric("value", title="episodes until the threshold", scale={"domain": [0, most * 1.04], "nice": False},
                axis={"tickCount": 6, "grid": True})  # fmt: skip
    lanes = {"x": x, "y": build_name_axis(220), "color": agent_colour(None)}
    outcomes = ["converged", *sorted({row["outcome"] for row in rows} - {"converged"})]
    shape = nominal(
        "outcome",
        scale={"domain": outcomes, "range": ["circle", *["triangle-right"] * (len(outcomes) - 1)]},
        legend=_LEGEND if len(outcomes) > 1 else None,
    )
    offset = numeric("spread", scale={"domain": [-6, 6]})
    return {
        **frame(
            "Episodes to convergence", "seeds, with the median and its interval; triangles did not converge"
        ),
        "height": max(90, 46 * len(algorithms)),
        "layer": [
            {"data": {"values": medians}, **whisker("x", lanes)},
            draw(medians, {"type": "tick", "thickness": 3, "size": 26}, lanes),
            draw(
                rows,
                {"type": "point", "filled": True, "size": 55, "opacity": 0.75},
                {**lanes, "yOffset": offset, "shape": shape},
            ),
        ],
    }


def performance_profile(algorithms: Sequence[AlgorithmSummary]) -> Spec:
    levels = np.linspace(0, 1, 101)
    rows = []
    for algorithm in algorithms:
        columns = estimate_profile(algorithm.scores, levels)
        rows += [
            {
                "trial": _name(algorithm),
                "level": round(float(level), 3),
                "value": value,
                "low": low,
                "high": high,
            }
            for level, value, low, high in zip(levels, *(column.tolist() for column in columns), strict=True)
        ]
    x = numeric(
        "level", title="final reward τ", scale={"domain": [0, 1]}, axis={"tickCount": 6, "grid": False}
    )
    y = numeric(
        "value",
        title="share of seeds above τ",
        scale={"domain": [0, 1]},
        axis={"format": "%", "tickCount": 5},
    )
    colour = agent_colour(_LEGEND)
    step = {"interpolate": "step-after"}
    return {
        **frame(
            "Performance profile", "the higher and the further right, the better; bands are 95 % intervals"
        ),
        "height": 240,
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "area", "opacity": 0.12, **step},
                "encoding": {"x": x, **between("y", y), "color": colour},
            },
            {
                "mark": {"type": "line", "strokeWidth": 2.2, **step},
                "encoding": {"x": x, "y": y, "color": colour},
            },
        ],
    }


def improvement(duels: Sequence[SeedComparison]) -> Spec:
    rows = [
        {
            "trial": f"{duel.first.name} > {duel.second.name}",
            "value": duel.improvement.value,
            "low": duel.improvement.low,
            "high": duel.improvement.high,
            "verdict": "proved" if duel.is_decided else "tied",
        }
        for duel in duels
    ]
    x = numeric("value", title="probability that a run of the first beats one of the second", scale={"domain": [0, 1]},
                axis={"format": "%", "tickCount": 5, "grid": True})  # fmt: skip
    verdicts = {"domain": ["proved", "tied"], "range": ["circle", "diamond"]}
    lanes = {"x": x, "y": build_name_axis(220)}
    return {
        **frame("Probability of improvement", "with 95 % bootstrap intervals; 50 % is no difference"),
        "height": max(90, 30 * len(duels)),
        "data": {"values": rows},
        "layer": [
            draw([{"value": 0.5}], {"type": "rule", "style": "edge"}, {"x": x}),
            whisker("x", lanes),
            dot({**lanes, "shape": nominal("verdict", legend=_LEGEND, scale=verdicts)}),
        ],
    }
