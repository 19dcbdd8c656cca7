"""A folder with a suite and agents in it, and what is in the store after a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from assay.model import Execution, Phase
from assay.store.store import Store

QUICK = {"warmup": 0, "measured": 1}


def numbers(count: int) -> list[dict[str, Any]]:
    """Cases whose right answer is their input."""
    return [{"id": f"c{n}", "input": str(n), "expected": str(n)} for n in range(count)]


def suite(cases: Any, agents: Iterable[Any] = (), /, benchmark: Any = None, **keys: Any) -> str:
    """The text of a suite with one benchmark; JSON is YAML."""
    own = {"id": "b", "cases": cases, "iterations": QUICK, **(benchmark or {})}
    return json.dumps({"suite": "s", "benchmarks": [own], "agents": list(agents), **keys})


def python_agent(name: str, file: str = "agents.py", **options: Any) -> dict[str, Any]:
    return {"name": name, "type": "python", "target": f"{file}:{name}", **options}


class Stored:
    """What a run left in the database of a folder."""

    def __init__(self, folder: Path, ref: str = "last") -> None:
        self._url = f"sqlite:///{folder / '.assay' / 'assay.db'}"
        with Store.open(self._url) as store:
            self.run = store.run(ref)
            self.suite = store.suite_of(self.run.id)
            self.by_trial = {t.trial.name: list(store.executions(t.id)) for t in self.run.trials}

    @property
    def all(self) -> list[Execution]:
        return [one for executions in self.by_trial.values() for one in executions]

    @property
    def measured(self) -> list[Execution]:
        return [one for one in self.all if one.phase is Phase.MEASURED]

    def status(self) -> dict[str, str]:
        """Case to how it ended, where each was asked once."""
        return {one.case: one.status.value for one in self.measured}

    def counts(self) -> Mapping[str, int]:
        return Counter(one.status.value for one in self.measured)

    def metric(self, name: str) -> dict[str, float | None]:
        return {one.case: one.measurements.get(name) for one in self.measured}
