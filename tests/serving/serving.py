"""Putting servers to the test, and what is in the store after it."""

from __future__ import annotations

from typing import Any

from tests.command import AssayInline, Done
from tests.suites.project import Stored

from assay.model import Execution


def run(assay: AssayInline, url: str, *more: str, model: str = "m") -> Done:
    """`assay run serving` against this server; without workers, unless a number of processes is asked for."""
    isolation = "process" if "--processes" in more else "inline"
    words = ("--set", f"url={url}", "--set", f"model={model}", "--isolation", isolation)
    return assay("run", "serving", *words, *more, "--json")


def executions(assay: AssayInline) -> list[Execution]:
    return Stored(assay.folder).measured


def only(assay: AssayInline) -> Execution:
    (found,) = executions(assay)
    return found


def codes(document: Any) -> set[str]:
    return {warning["code"] for warning in document["warnings"]}


def told(document: Any, code: str) -> list[str]:
    return [warning["message"] for warning in document["warnings"] if warning["code"] == code]
