"""Which sandbox the scorers of a run used, kept with the run."""

from __future__ import annotations

from dataclasses import replace

from assay.execute.sandbox import noting_sandboxes
from assay.model import Environment, Suite
from assay.plan.suite import scorers_of
from assay.plugin.scorers import make_scorer

FACT = "sandbox"


def record_sandbox(environment: Environment, suite: Suite | None) -> Environment:
    """The environment with the sandbox of the suite's scorers, beside any that was used for the run before."""
    if suite is None:
        return environment
    # Scorers choose their sandbox when they are made, so making each of them once tells which will be used.
    with noting_sandboxes() as found:
        for use in scorers_of(suite):
            make_scorer(use)
    # A run that is resumed or scored again on another machine may have used several.
    known = str(environment.facts.get(FACT) or "").split(", ")
    named = ", ".join(sorted(found.union(filter(None, known))))
    return replace(environment, facts={**environment.facts, FACT: named}) if named else environment
