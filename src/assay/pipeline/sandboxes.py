"""Which sandbox the scorers of a run used, kept with the run."""

from __future__ import annotations

from dataclasses import replace

from assay.model import Environment, Suite
from assay.plan.suite import scorers_of
from assay.plugin.sandbox import noting_sandboxes
from assay.plugin.scorers import make_scorer

FACT = "sandbox"


def record_sandbox(environment: Environment, suite: Suite | None) -> Environment:
    """The environment with the sandbox of the suite's scorers, beside any that was used for the run before."""
    if suite is None:
        return environment
    with noting_sandboxes() as found:
        for use in scorers_of(suite):
            make_scorer(use)
    known = str(environment.facts.get(FACT) or "").split(", ")
    named = ", ".join(sorted(found.union(filter(None, known))))
    return replace(environment, facts={**environment.facts, FACT: named}) if named else environment
