"""Which sandbox the scorers and experiments of a run used, kept with the run."""

from __future__ import annotations

from dataclasses import replace

from assay.model import Environment, Plan, Suite
from assay.plan.suite import scorers_of
from assay.plugin.experiment import has_trait

FACT = "sandbox"


def record_sandbox(environment: Environment, of: Plan | Suite) -> Environment:
    """The environment with the sandbox of scorers and experiments, beside any that was used for the run before."""
    suite, trials = (of.suite, of.trials) if isinstance(of, Plan) else (of, ())
    in_need = [name for name in {trial.experiment for trial in trials} if has_trait(name, "needs_sandbox")]
    if suite is None and not in_need:
        return environment
    from assay.plugin.sandbox import find_sandbox, record_used_sandboxes
    from assay.plugin.scorers import make_scorer

    # Scorers choose their sandbox when they are made, so making each of them once tells which will be used.
    with record_used_sandboxes() as found:
        for use in scorers_of(suite) if suite is not None else ():
            make_scorer(use)
        for name in in_need:
            find_sandbox(f"The experiment {name}")
    # A run that is resumed or scored again on another machine may have used several.
    known = str(environment.facts.get(FACT) or "").split(", ")
    named = ", ".join(sorted(found.union(filter(None, known))))
    return replace(environment, facts={**environment.facts, FACT: named}) if named else environment
