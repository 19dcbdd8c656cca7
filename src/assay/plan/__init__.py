"""A Spec becomes a Plan: every name is looked up and every param checked now, not an hour into the run."""

from assay.plan.expand import expand

__all__ = ["expand"]
