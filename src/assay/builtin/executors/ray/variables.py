"""The environment variables that agents name: all that is handed to the nodes, in memory and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from assay.model import Plan
from assay.model.codec import to_json
from assay.plugin import SANDBOX_VARIABLE, find

_NAME = re.compile(r"\$\{(\w+)(?::-[^}]*)?\}")


def select_variables(plan: Plan, environment: Mapping[str, str]) -> dict[str, str]:
    """Those that the options of agents and scorers name as `${NAME}`, and those of the servers that agents speak to."""
    return {name: environment[name] for name in _find_names(plan) if name in environment}


def _find_names(plan: Plan) -> Iterator[str]:
    yield SANDBOX_VARIABLE
    uses = [trial.agent_use for trial in plan.trials if trial.agent_use is not None]
    scorers = [use for benchmark in plan.suite.benchmarks for use in benchmark.scorers] if plan.suite else []
    params = [trial.params for trial in plan.trials]
    yield from _NAME.findall(
        to_json([[use.options for use in uses], [use.options for use in scorers], params])
    )
    judges = (use.options.get("agent") for use in scorers)
    kinds = (str(judge["type"]) for judge in judges if isinstance(judge, Mapping) and "type" in judge)
    for kind in {*(use.type for use in uses), *kinds}:
        yield from getattr(find("agents", kind), "variables", ())
