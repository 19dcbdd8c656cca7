"""The thresholds that the benchmarks of StateSet Agents publish, and those of Chimeraforge's guide for model servers."""

from __future__ import annotations

from assay.plugin.grades import GradeBand, GradeScale

_GB = 1e9

P95 = GradeScale(
    "P95 latency", ("seconds",), "p95", (GradeBand("good", 0.2, "good"), GradeBand("slow", tone="warn"))
)
P99 = GradeScale(
    "P99 latency", ("seconds",), "p99", (GradeBand("fine", 1.0, "good"), GradeBand("bad", tone="bad"))
)
TURN_P95 = GradeScale("P95 of turns", ("turn_p95_seconds",), "median", P95.bands)
TURN_P99 = GradeScale("P99 of turns", ("turn_p99_seconds",), "median", P99.bands)
ONE_TURN_P95 = GradeScale("P95 of turns", ("turn_seconds",), "p95", P95.bands)
ONE_TURN_P99 = GradeScale("P99 of turns", ("turn_seconds",), "p99", P99.bands)
CONVERSATIONS = GradeScale(
    "conversations",
    ("conversations_per_second",),
    "median",
    (GradeBand("low", 10.0, "warn"), GradeBand("good", tone="good")),
)
LEAK = GradeScale(
    "memory growth",
    ("leak_bytes",),
    "median",
    (GradeBand("no leak", 100.0, "good"), GradeBand("leak", tone="bad")),
    ends=("leak_low_bytes", "leak_high_bytes"),
)
"""Bytes a conversation. Nothing proves that a slope is 0, so up to 100 bytes count as none: 1 GB in ten million conversations."""
STABILITY = GradeScale(
    "CV of time",
    ("seconds",),
    "cv",
    (
        GradeBand("excellent", 0.05, "good"),
        GradeBand("good", 0.1, "good"),
        GradeBand("moderate", 0.15, "warn"),
        GradeBand("poor", tone="bad"),
    ),
)
MEMORY = GradeScale(
    "memory",
    ("server_memory_bytes", "rss_bytes", "rss_max_bytes"),
    "median",
    (GradeBand("good", 30 * _GB, "good"), GradeBand("too much", tone="bad")),
)
GPU = GradeScale(
    "GPU utilisation",
    ("gpu_percent",),
    "median",
    (GradeBand("poor", 50.0, "bad"), GradeBand("moderate", 80.0, "warn"), GradeBand("good", tone="good")),
)
CONVERGENCE = GradeScale(
    "episodes to 80 % reward",
    ("episodes_to_threshold",),
    "median",
    (
        GradeBand("outstanding", 250.0, "good"),
        GradeBand("excellent", 300.0, "good"),
        GradeBand("good", 400.0, "good"),
        GradeBand("slow", tone="warn"),
    ),
)

COMMON = (STABILITY, MEMORY, GPU, CONVERGENCE)
"""Scales of every benchmark that measures them."""
ANSWERS = (P95, P99, *COMMON)

SERVING = (
    GradeScale(
        "throughput",
        ("tokens_per_second",),
        "median",
        (GradeBand("below target", 100.0, "warn"), GradeBand("good", tone="good")),
    ),
    GradeScale(
        "TTFT", ("ttft",), "median", (GradeBand("good", 0.45, "good"), GradeBand("slow", tone="warn"))
    ),
    GradeScale(
        "CV of throughput",
        ("tokens_per_second",),
        "cv",
        (
            GradeBand("excellent", 0.004, "good"),
            GradeBand("typical", 0.005, "good"),
            GradeBand("unsteady", tone="warn"),
        ),
    ),
    MEMORY,
    GPU,
)
