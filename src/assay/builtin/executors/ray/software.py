"""The software of this machine, as far as all nodes of a cluster must have it."""

from __future__ import annotations

import platform
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


def _version_of(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
