"""Definitions of agents, wherever they are written, become AgentUse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field

from assay.errors import Mistake, SpecError
from assay.model import AgentUse
from assay.model.secret import plain_secrets
from assay.spec.document import Document, Place, read_document
from assay.spec.load import validated
from assay.spec.schema import Section


class PriceSection(Section):
    """usd per million tokens, and per request."""

    input: Annotated[float, Field(ge=0)] = 0.0
    output: Annotated[float, Field(ge=0)] = 0.0
    cached: Annotated[float, Field(ge=0)] | None = None
    request: Annotated[float, Field(ge=0)] = 0.0


class AgentSection(Section):
    """An agent; the keys beyond these are options of its type."""

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)

    name: str
    type: str = Field(
        description="python, command, http, openai, anthropic, ollama, llama, recorded, oracle, nop, …"
    )
    version: Annotated[
        str, BeforeValidator(lambda value: str(value) if isinstance(value, (int, float)) else value)
    ] = ""
    price: PriceSection | None = None


class AgentsFile(Section):
    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)

    agents: list[Any]


def read_agents(path: Path) -> dict[str, AgentUse]:
    """The agents that a file defines, by name."""
    document = read_document(path)
    if not isinstance(document.value, dict) or not isinstance(document.value.get("agents"), list):
        raise SpecError([document.mistake((), "defines no agents. It needs: agents: [{name: …, type: …}]")])
    mistakes: list[Mistake] = []
    found = agents_in(document, ("agents",), document.value["agents"], path.resolve().parent, mistakes)
    if mistakes:
        raise SpecError(mistakes)
    return found


def agents_in(
    document: Document, place: Place, items: Iterable[Any], folder: Path, mistakes: list[Mistake]
) -> dict[str, AgentUse]:
    """Definitions among the items of an `agents:` key; plain names are references and passed over."""
    found: dict[str, AgentUse] = {}
    for index, item in enumerate(items):
        here = (*place, index)
        if isinstance(item, str):
            continue
        if not isinstance(item, Mapping):
            mistakes.append(document.mistake(here, "is neither the name of an agent nor its definition."))
            continue
        section = validated(AgentSection, item, document, here, mistakes)
        if section is None:
            continue
        if section.name in found:
            mistakes.append(document.mistake((*here, "name"), f"'{section.name}' is defined twice."))
        mistakes += secret_mistakes(section.model_extra or {}, document, here)
        found[section.name] = agent_use(section, folder)
    return found


WRITTEN_OUT = "is a secret, and what is written here is stored and shown."
INSTEAD = "Put it into an environment variable and name that: ${NAME}"


def secret_mistakes(options: Mapping[str, Any], document: Document, place: Place) -> list[Mistake]:
    """The value is not repeated: a message may end in a log."""
    return [document.mistake((*place, *one), WRITTEN_OUT, INSTEAD) for one in plain_secrets(options)]


def agent_use(section: AgentSection, folder: Path) -> AgentUse:
    price = {k: v for k, v in section.price.model_dump().items() if v is not None} if section.price else None
    return AgentUse(
        section.name, section.type, dict(section.model_extra or {}), section.version, price, str(folder)
    )
