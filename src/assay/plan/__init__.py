"""The second stage: a spec, suite or team file becomes a `Plan`, which lists every trial that will run.

Here every name is looked up and every param and option checked, so that a mistake shows now and not an hour into the run. That means
that plug-ins and the user's Python files are imported at this stage, but nothing is executed. `target.plan_target` decides what a
name on the command line means; `expand`, `suite` and `team` make the trials of specs, suites and teams.
"""

from assay.plan.expand import expand

__all__ = ["expand"]
