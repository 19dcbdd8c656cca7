"""Turns agents, scorers and cases that are given as Python objects into what a suite file would say.

A function that a fresh process can import becomes a name such as `module:function`, and runs isolated like any other agent.
A function that only this session has, such as a lambda, is kept in `SessionFunctions` and runs inline.
"""

from __future__ import annotations

import json
import site
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.api.options import as_list
from assay.errors import Mistake, PlanError, SpecError
from assay.model import AgentUse
from assay.plugin.session import SESSION
from assay.spec.agents import agents_in
from assay.spec.document import Document

CALL = "run()"
"""Stands in messages in the place of a file's name."""


@dataclass(slots=True)
class SessionFunctions:
    """Functions that no other process can import, by the names they are found by during the run."""

    agents: dict[str, Callable[..., Any]] = field(default_factory=dict)
    scorers: dict[str, Callable[..., Any]] = field(default_factory=dict)

    @property
    def all(self) -> dict[str, Callable[..., Any]]:
        return {**self.scorers, **self.agents}

    def explain(self) -> str:
        names = ", ".join(f"'{name}'" for name in self.all)
        return f"{names}: defined in this Python session, so no other process can import it."


def build_agents(value: Any, session: SessionFunctions) -> tuple[str | AgentUse, ...]:
    """Names stay names; functions and definitions become agents."""
    if isinstance(value, Mapping):
        return tuple(_agent(name, given, session) for name, given in value.items())
    items = as_list(value)
    return tuple(item if isinstance(item, str) else _agent(None, item, session) for item in items)


def _agent(name: str | None, given: Any, session: SessionFunctions) -> AgentUse:
    """A definition or a function as an agent; a function that cannot be imported is added to the session."""
    if isinstance(given, Mapping):
        definition = {"name": name, **given} if name is not None else dict(given)
        mistakes: list[Mistake] = []
        agents = agents_in(Document(CALL, {}), ("agents",), [definition], Path.cwd(), mistakes)
        if mistakes:
            raise SpecError(mistakes)
        return next(iter(agents.values()))
    if not callable(given) or isinstance(given, type):
        raise PlanError(
            f"{CALL}: agent '{name}' must be a function or a definition with a type, not {given!r:.60}."
        )
    # Results are stored and ranked by name, so one that says nothing is refused.
    if name is None:
        name = getattr(given, "__name__", "<lambda>")
        if name == "<lambda>":
            raise PlanError(f'{CALL}: an agent needs a name. Write: agents={{"mine": {given!r:.60}}}')
    if (place := _importable(given)) is not None:
        return AgentUse(name, "python", {"target": f"{place.module}:{place.name}"}, folder=str(place.root))
    session.agents[name] = given
    return AgentUse(name, "python", {"target": f"{SESSION}:{name}"}, folder=str(Path.cwd()))


@dataclass(frozen=True, slots=True)
class _ImportPath:
    """The place from which a fresh process can import a function."""

    module: str
    name: str
    root: Path
    file: Path


def _importable(function: Callable[..., Any]) -> _ImportPath | None:
    """None for lambdas, closures, bound methods, and whatever a script or a notebook defines itself.

    Importing a script in order to find its function would run the script again.
    """
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    name = getattr(function, "__qualname__", "")
    file = Path(getattr(module, "__file__", None) or "")
    if module is None or module.__name__ == "__main__" or file.suffix != ".py" or not file.is_file():
        return None
    # The name must lead back to this very object: a decorated function, or one that was defined again, has the name of another.
    attribute: object = module
    for part in name.split("."):
        attribute = getattr(attribute, part, None)
    if attribute is not function:
        return None
    # The folder that has to be on the path: as many folders up as the module's name has packages.
    levels = module.__name__.count(".") + (file.name == "__init__.py")
    return _ImportPath(module.__name__, name, file.resolve().parents[levels], file.resolve())


def build_suite(options: Mapping[str, Any], session: SessionFunctions) -> Document:
    """The suite that `cases`, `scorer`, `suite` and `limits` describe."""
    name = options.get("suite", "cases")
    benchmark: dict[str, Any] = {"id": name, "cases": _cases(options["cases"])}
    if "scorer" in options:
        benchmark["scorer"] = [_scorer(scorer, session) for scorer in as_list(options["scorer"])]
    if "limits" in options:
        benchmark["limits"] = dict(options["limits"])
    return Document(CALL, {"suite": name, "benchmarks": [benchmark]})


def _cases(given: str | Path | Sequence[Any]) -> str | list[Any]:
    """Cases as data.

    They are stored with the run and sent to workers, so an object that JSON cannot hold is refused at once.
    """
    if isinstance(given, str | Path):
        return str(given)
    cases = [dict(case) if isinstance(case, Mapping) else case for case in given]
    for index, case in enumerate(cases):
        try:
            json.dumps(case)
        except (TypeError, ValueError) as error:
            raise PlanError(f"{CALL}: cases.{index} must be data that JSON can hold: {error}.") from None
    return cases


def _scorer(given: Any, session: SessionFunctions) -> Any:
    """A scorer as a suite names it; a function that cannot be imported is added to the session."""
    if isinstance(given, str | Mapping):
        return dict(given) if isinstance(given, Mapping) else given
    if not callable(given):
        raise PlanError(f"{CALL}: a scorer must be a name, a definition or a function, not {given!r:.60}.")
    # A module of its own can be named by its file, wherever that is. One in a package cannot: its relative imports would fail.
    place = _importable(given)
    if place is not None and "." not in place.module:
        return f"{place.file}::{place.name}"
    # A fresh process finds modules of installed packages and of the current folder without being told.
    search_path = {str(Path.cwd()), *site.getsitepackages(), site.getusersitepackages()}
    if place is not None and str(place.root) in search_path:
        return f"{place.module}:{place.name}"
    name = getattr(given, "__name__", type(given).__name__).strip("<>")
    if name in session.all:
        raise PlanError(f"{CALL}: two functions are called '{name}'. Rename one of them.")
    session.scorers[name] = given
    return f"{SESSION}:{name}"
