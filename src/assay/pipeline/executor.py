"""Makes the executor of a plan and gives it up after the run.

An executor that is a `ConfiguredExecutor` is made before the run begins: what it cannot do ends the command, and leaves no run behind.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from assay.errors import PlanError
from assay.model import Plan
from assay.plugin import lookup
from assay.plugin.executor import ConfiguredExecutor, Executor

_log = logging.getLogger(__name__)


class PreparedPlan(NamedTuple):
    """A plan that says how many workers execute it, and the executor that has them."""

    plan: Plan
    executor: Executor


def check_executor_options(executor: str, options: Mapping[str, object]) -> None:
    """PlanError for settings of an executor that has none."""
    if options and not isinstance(lookup.find("executors", executor), ConfiguredExecutor):
        names = ", ".join(f"'{name}'" for name in options)
        raise PlanError(f"The executor '{executor}' has no settings, but {names} was given.")


@contextlib.contextmanager
def open_executor(plan: Plan) -> Iterator[PreparedPlan]:
    """The executor that the plan names, for as long as its run lasts."""
    kind = lookup.find("executors", plan.executor)
    if not isinstance(kind, ConfiguredExecutor):
        workers = plan.parallelism or 1
        yield PreparedPlan(replace(plan, parallelism=workers), kind(workers))
        return
    executor = kind.configured(plan, plan.executor_options)
    try:
        _log.warning("%s", executor.describe())
        yield PreparedPlan(replace(plan, parallelism=executor.workers), executor)
    finally:
        executor.close()
