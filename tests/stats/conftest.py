"""Properties are judged by their results, not by how long a busy machine takes."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("calm", deadline=None, max_examples=60)
settings.load_profile("calm")
