"""The software of this machine, as far as all nodes of a cluster must have it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from time import time
from typing import Any

from assay import __version__

OPTIONAL = ("psycopg", "jsonschema", "pyarrow", "xllamacpp", "tokenizers", "scipy", "redis", "torch")
"""Modules of extras that agents, scorers and experiments use."""


def describe_software() -> dict[str, Any]:
    """Versions, the optional modules that can be imported, and the clock."""
    return {
        "assay": __version__,
        "python": platform.python_version(),
        "ray": _version_of("ray"),
        "packages": [name for name in OPTIONAL if find_spec(name) is not None],
        "time": time(),
    }


def find_versions() -> dict[str, str]:
    """Those that must be the same on all nodes. Patch releases of Python understand each other."""
    found = describe_software()
    python = ".".join(found["python"].split(".")[:2])
    return {"Assay": found["assay"], "Python": python, "Ray": found["ray"]}


def list_differences(here: Mapping[str, str], there: Mapping[str, str]) -> tuple[str, str] | None:
    """The versions that differ, as they are here and there; None if all are the same."""
    names = [name for name in here if here[name] != there.get(name)]
    ours, theirs = (", ".join(f"{name} {of.get(name)}" for name in names) for of in (here, there))
    return (ours, theirs) if names else None


def _version_of(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
