"""What is shown of a plug-in's options comes from its code."""

from __future__ import annotations

import pytest
from tests.command import Assay, AssayInline

from assay.plugin import lookup
from assay.plugin.options import KINDS, option_schema


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in lookup.known(kind)])
def test_every_option_of_a_plug_in_is_explained(kind: str, name: str) -> None:
    properties = option_schema(kind, lookup.find(kind, name)).get("properties", {})

    # Describe it under Args: of the docstring, or with Field(description=…).
    assert [key for key, field in properties.items() if not field.get("description")] == []


@pytest.mark.parametrize(
    ("kind", "name", "option", "facts"),
    [
        ("scorers", "contains", "mode", {"enum": ["all", "any"], "default": "all"}),
        ("agents", "openai", "model", {"type": "string", "required": True}),
        ("agents", "openai", "retries", {"type": "integer", "default": 3}),
        ("instruments", "psutil", "interval_ms", {"type": "number", "default": 200}),
        ("experiments", "pragma_profile", "num_records", {"type": "integer", "default": 100_000}),
    ],
)
def test_list_shows_options_with_types_and_defaults(
    assay_inline: AssayInline, kind: str, name: str, option: str, facts: dict[str, object]
) -> None:
    listed = assay_inline("list", kind, "--params", "--json").json
    found = next(entry for entry in listed if entry["name"] == name)["params"][option]
    assert {key: found.get(key) for key in facts} == facts
    assert found["description"]

    lines = assay_inline("list", kind, "--params").out.splitlines()
    own = [line.strip() for line in lines if line.strip().startswith(f"{option}:")]
    assert any(str(facts.get("default", "required")) in line for line in own)


def test_a_scorer_of_ones_own_shows_its_options_too(assay: Assay) -> None:
    assay.write(
        "own.py",
        '''
from assay.plugin.lookup import register

def near(output, expected, within: float = 0.5):
    """Close enough.

    Args:
        within: The largest difference.
    """
    return abs(float(output) - float(expected)) <= within

register("scorers", "near", near)
''',
    )

    listed = assay("list", "scorers", "--params", "--json", "--load", "own.py").json
    found = next(entry for entry in listed if entry["name"] == "near")
    assert found["description"] == "Close enough."
    assert found["params"] == {
        "within": {
            "type": "number",
            "default": 0.5,
            "description": "The largest difference.",
        }
    }
