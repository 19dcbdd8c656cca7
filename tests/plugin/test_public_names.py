"""`assay.plugin` is all that a plug-in has to import, beside the nouns."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import assay.plugin
from assay.plugin import (
    Agent,
    AgentHooks,
    Experiment,
    ExperimentHooks,
    Instrument,
    InstrumentHooks,
    MeasuredFunction,
    Reporter,
    Scorer,
    ScorerHooks,
)

SOURCE = Path(assay.plugin.__file__).parents[1]
LOOKED_UP = re.compile(r"(?:get|has)attr\(\s*(?:type\()?([\w.()\"\[\], ]+?)\)?,\s*\"(\w+)\"")
CONTRACTS = {
    "agent": (Agent, AgentHooks),
    "scorer": (Scorer, ScorerHooks),
    "experiment": (Experiment, ExperimentHooks, MeasuredFunction),
    "reporter": (Reporter,),
}
CONTRACTS["member"] = (
    *(contract for kind in CONTRACTS.values() for contract in kind),
    Instrument,
    InstrumentHooks,
)


def test_every_public_name_can_be_had_and_is_documented() -> None:
    assert assay.plugin.__all__ == sorted(assay.plugin.__all__)
    members = {name: getattr(assay.plugin, name) for name in assay.plugin.__all__ if name != "Attempt"}
    assert [name for name, member in members.items() if not inspect.getdoc(member)] == []


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(inspect.getsource(assay.plugin))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {name.name for node in checked.body if isinstance(node, ast.ImportFrom) for name in node.names}

    assert imported == set(assay.plugin.__all__)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        assay.plugin.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_importing_it_loads_nothing_else() -> None:
    code = "import sys, assay.plugin; print([name for name in sys.modules if name.startswith('assay.')])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "['assay.plugin']\n"


def _looked_up(kind: str) -> set[str]:
    """Names that our code looks up on things that it calls an agent, a scorer or an experiment."""
    pairs = [
        pair
        for file in SOURCE.rglob("*.py")
        if "code_sandbox" not in file.parts
        for pair in LOOKED_UP.findall(file.read_text(encoding="utf-8"))
    ]
    return {name for owner, name in pairs if kind in owner.lower() and not name.startswith("__")}


@pytest.mark.parametrize("kind", CONTRACTS)
def test_every_hook_that_is_looked_up_stands_in_a_protocol(kind: str) -> None:
    declared = {
        name for contract in CONTRACTS[kind] for name in {**vars(contract), **contract.__annotations__}
    }

    assert _looked_up(kind)
    assert _looked_up(kind) - declared == set()
