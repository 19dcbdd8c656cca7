"""The param `agent` of experiments that test an agent: its definition, which is checked before the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from assay.model import AgentUse
from assay.plugin.agent import BadAgent
from assay.plugin.options import option_problems


def read_definition(given: Mapping[str, Any]) -> AgentUse:
    """The agent that a definition stands for; keys of an inline one that are none of ours are its options."""
    if "options" in given:
        try:
            return AgentUse(**given)
        except TypeError:
            raise BadAgent(
                "needs 'name' and 'type' beside 'options', and may have 'version', 'price' and 'folder'"
            ) from None
    own: dict[str, Any] = {
        key: str(given[key]) for key in ("name", "type", "version", "folder") if key in given
    }
    if "price" in given:
        own["price"] = given["price"]
    if "type" not in own:
        raise BadAgent("The definition of an agent needs a 'type'.")
    options = {key: value for key, value in given.items() if key not in own}
    return AgentUse(**{"name": own["type"], **own, "options": options})


def check_definition(given: dict[str, Any]) -> dict[str, Any]:
    """ValueError for what defines no agent, or names an option that its type does not have."""
    try:
        use = read_definition(given)
    except BadAgent as error:
        raise ValueError(str(error)) from None
    if problems := option_problems("agents", use.type, use.options):
        raise ValueError(" ".join(problem.text for problem in problems))
    return given


AgentDefinition = Annotated[dict[str, Any], AfterValidator(check_definition)]
