"""Specs that come with Assay."""

from __future__ import annotations

from pathlib import Path


def shipped_specs() -> dict[str, Path]:
    folder = Path(__file__).parent.parent / "builtin" / "specs"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}
