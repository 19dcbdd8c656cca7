"""Plans and executions to store, small and with exact figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from assay.model import (
    Agent,
    Batch,
    Environment,
    Execution,
    InstrumentUse,
    Isolation,
    Iterations,
    Limits,
    Order,
    Phase,
    Plan,
    Run,
    Status,
    Trial,
    Until,
)
from assay.store.store import Store

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
EPOCH = NOON.timestamp()

ENVIRONMENT = Environment(
    {"os": "Linux", "cpu": {"model": "x", "cores": 2}, "load": [0.5, 0.25]},
    {"commit": "abc", "dirty": False},
    ("the machine is noisy",),
)


PARSER = Agent("parser", "1")


def simple_trial(index: int = 0, agent: Agent = PARSER) -> Trial:
    return Trial(index, f"trial {index}", agent, "parse", "noop", {"size": index}, Iterations(measured=5))


def elaborate_trial(index: int = 0) -> Trial:
    return Trial(
        index=index,
        name="zeta=1, alpha=[2]",
        agent=Agent("parser"),
        benchmark="parse",
        experiment="module:Parse",
        params={"zeta": 1, "alpha": [2, {"deep": None}], "big": 1e23, "text": "ä ✓", "yes": True},
        iterations=Iterations(2, 50, Until(0.1, 50, 7, "usd"), None),
        axes={"zeta": 1, "alpha": [2, {"deep": None}]},
        processes=10,
        instruments=(InstrumentUse("timing"), InstrumentUse("psutil", {"interval_ms": 5})),
        isolation=Isolation.COLD,
        limits=Limits(1.5, 2**33, 100.0, 0.25),
    )


def plan_of(*trials: Trial, name: str = "parsing", tags: tuple[str, ...] = ()) -> Plan:
    return Plan(name, trials or (simple_trial(),), seed=7, tags=tags)


def elaborate_plan() -> Plan:
    return Plan(
        name="elaborate",
        trials=(elaborate_trial(0), simple_trial(1)),
        seed=2**40,
        order=Order.SEQUENTIAL,
        parallelism=3,
        executor="elsewhere",
        load=("experiments.py",),
        output_dir="results",
        tags=("db", "nightly"),
        notes="why",
        source={"experiment": "noop", "zeta": [1, 2], "alpha": {"b": 1, "a": 2}},
    )


def begin(store: Store, run_id: str = "run-1", plan: Plan | None = None, *, hours: float = 0) -> Run:
    return store.begin(plan or plan_of(), ENVIRONMENT, run_id, NOON + timedelta(hours=hours), "me")


def execution(
    repetition: int = 0,
    *,
    trial: int = 0,
    process: int = 0,
    phase: Phase = Phase.MEASURED,
    status: Status = Status.OK,
    measurements: Mapping[str, float] | None = None,
    **more: object,
) -> Execution:
    measured = {"seconds": 0.5 + repetition} if measurements is None else measurements
    started = EPOCH + repetition
    return Execution(trial, process, phase, repetition, status, started, measured, **more)  # type: ignore[arg-type]


def batch(made: Iterable[Execution]) -> Batch:
    return Batch(tuple(made))
