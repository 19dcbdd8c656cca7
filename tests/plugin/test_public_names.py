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
    ScenarioHooks,
    Scorer,
    ScorerHooks,
    charts,
    figures,
)

PUBLIC = vars(assay.plugin)["__all__"]
SOURCE = Path(assay.plugin.__file__).parents[1]
LOOKED_UP = re.compile(r"(?:get|has)attr\(\s*(?:type\()?([\w.()\"\[\], ]+?)\)?,\s*\"(\w+)\"")
CONTRACTS = {
    "agent": (Agent, AgentHooks),
    "scorer": (Scorer, ScorerHooks),
    "experiment": (Experiment, ExperimentHooks, MeasuredFunction),
    "reporter": (Reporter,),
}
PUBLIC_MODULES = (charts, figures)
"""They are imported from as modules: alone, names such as `dot` would say little."""
CONTRACTS["member"] = (
    *(contract for kind in CONTRACTS.values() for contract in kind),
    Instrument,
    InstrumentHooks,
    ScenarioHooks,
)


def test_every_public_name_can_be_had_and_is_documented() -> None:
    assert len(PUBLIC) == len(set(PUBLIC))
    members = {name: getattr(assay.plugin, name) for name in PUBLIC if name != "Attempt"}
    assert [name for name, member in members.items() if not inspect.getdoc(member)] == []


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(inspect.getsource(assay.plugin))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {name.name for node in checked.body if isinstance(node, ast.ImportFrom) for name in node.names}

    assert imported == set(PUBLIC)


def test_our_plug_ins_use_only_names_that_anybody_may_import() -> None:
    used = {
        name.name
        for file in (SOURCE / "builtin").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[:2] == ["assay", "plugin"]
        for name in node.names
    }

    assert "Judged" in used
    assert used - set(PUBLIC) - {name for module in PUBLIC_MODULES for name in vars(module)} == set()


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
