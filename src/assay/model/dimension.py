"""What agents are rated on."""

from __future__ import annotations

DIMENSIONS = ("accuracy", "speed", "efficiency", "cost", "reliability")
WEIGHTS = {"accuracy": 0.30, "speed": 0.20, "efficiency": 0.20, "cost": 0.15, "reliability": 0.15}
"""The weight of each dimension in the overall rating, unless a rubric says otherwise."""
