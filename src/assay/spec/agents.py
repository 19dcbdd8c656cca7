"""Definitions of agents, wherever they are written, become `AgentUse`.

Agents are defined in files of their own (`agents:` in assay.toml) or inline in suites, specs and team files; the keys are the same
everywhere. The keys that every agent has are checked here. All other keys are options of the agent's type, and are checked against that
type when the run is planned, because that imports the type. Secrets must not be written out in options: options are stored with
the run and shown in reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, PositiveInt, WithJsonSchema

from assay.errors import Mistake, SpecError
from assay.model import AgentUse
from assay.model.secret import plain_secrets
from assay.spec.document import Document, Place, read_document
from assay.spec.read import KeyOrigin, validate_model
from assay.spec.schema import ResourcesSection, Section, Version


class PriceSection(Section):
    """What an agent costs, in usd per million tokens and per request."""

    input: Annotated[float, Field(ge=0)] = Field(
        0.0, description="USD per million input tokens.", examples=[0.15]
    )
    output: Annotated[float, Field(ge=0)] = Field(
        0.0, description="USD per million output tokens.", examples=[0.6]
    )
    cached: Annotated[float, Field(ge=0)] | None = Field(
        None, description="Usd per million cached input tokens. Default: as `input`.", examples=[0.075]
    )
    request: Annotated[float, Field(ge=0)] = Field(0.0, description="Usd per request.", examples=[0.001])


def _read_free(value: Any) -> Any:
    """`price: free` is a price of 0 for everything. Pydantic calls this before it checks a price."""
    if isinstance(value, str) and value != "free":
        raise ValueError("must be 'free' or {input: usd, output: usd, request: usd}.")
    return {} if value == "free" else value


class _PriceSchema:
    """The JSON schema of a price, built only on demand: building it takes as long as a hundred other definitions here."""

    def __get_pydantic_json_schema__(self, *_: object) -> dict[str, Any]:
        return {"anyOf": [{"const": "free"}, PriceSection.model_json_schema()]}


Price = Annotated[PriceSection, BeforeValidator(_read_free), _PriceSchema()]


Cassette = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "match": {"enum": ["strict", "lenient"]},
                        "delays": {"anyOf": [{"type": "string"}, {"type": "number"}]},
                    },
                    "required": ["path"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]


class AgentSection(Section):
    """Keys of every agent; the other keys of a definition are options of its type."""

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)

    name: str = Field(description="Name of the agent in commands and reports.", examples=["fast"])
    type: str = Field(
        description="One of the types below, or a class of your own: module:Class or file.py::Class.",
        examples=["python"],
    )
    version: Version = Field(
        "",
        description="Version of the agent. Default: detected, such as the commit of the file or the model that answered.",
        examples=["3"],
    )
    price: Price | None = Field(
        None,
        description="What it costs, if neither its answers nor the public price list say so; `free` if it costs nothing. Without "
        "it the cost of an agent that reports no usage is unknown.",
        examples=[{"input": 0.15, "output": 0.6}],
    )
    cassette: Cassette = Field(
        None,
        description="Answer its model calls from this recording (`assay record`): a file, or {path, match, delays}.",
        examples=["calls.jsonl"],
    )
    concurrency: PositiveInt | None = Field(
        None,
        description="Maximum executions in flight, whatever a run requests. Set 1 for a Python function that is not "
        "thread-safe.",
        examples=[1],
    )
    resources: ResourcesSection | None = Field(
        None,
        description="Resources that a job of this agent needs. Default: one processor.",
        examples=[{"cpu": 2, "gpu": 1, "custom": {"tpu": 1}}],
    )


class AgentsFile(Section):
    """A file that defines agents."""

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)

    agents: list[Any] = Field(
        description="The definitions.",
        examples=[[{"name": "fast", "type": "python", "target": "agents.py:fast"}]],
    )


def read_agents(path: Path, *, checks_options: bool = False) -> dict[str, AgentUse]:
    """The agents that a file defines, by name; their options are checked on demand, as that imports their classes."""
    document = read_document(path)
    if not isinstance(document.value, dict) or not isinstance(document.value.get("agents"), list):
        raise SpecError([document.mistake((), "defines no agents. It needs: agents: [{name: …, type: …}]")])
    mistakes = list(document.mistakes)
    agents = agents_in(document, ("agents",), document.value["agents"], path.resolve().parent, mistakes)
    if checks_options and not mistakes:
        mistakes += _option_mistakes(document, agents)
    if mistakes:
        raise SpecError(mistakes)
    return agents


def _option_mistakes(document: Document, agents: Mapping[str, AgentUse]) -> list[Mistake]:
    """Mistakes in the options of agents, each at its line.

    Their types are imported for it, so only commands that check a file ask.
    """
    from assay.plugin.options import option_problems

    return [
        document.mistake(("agents", index, problem.key or "type"), problem.text)
        for index, item in enumerate(document.value["agents"])
        if isinstance(item, Mapping)
        for problem in option_problems("agents", agents[item["name"]].type, agents[item["name"]].options)
    ]


def agents_in(
    document: Document, place: Place, items: Iterable[Any], folder: Path, mistakes: list[Mistake]
) -> dict[str, AgentUse]:
    """Definitions among the items of an `agents:` key, by name.

    Items that are plain names refer to agents that are defined elsewhere and are skipped. What is wrong with a definition is
    added to `mistakes`; relative paths in its options count from `folder`.
    """
    agents: dict[str, AgentUse] = {}
    for index, item in enumerate(items):
        here = (*place, index)
        if isinstance(item, str):
            continue
        if not isinstance(item, Mapping):
            mistakes.append(document.mistake(here, "is neither the name of an agent nor its definition."))
            continue
        section = validate_model(AgentSection, item, KeyOrigin(document, here), mistakes)
        if section is None:
            continue
        if section.name in agents:
            mistakes.append(document.mistake((*here, "name"), f"'{section.name}' is defined twice."))
        mistakes += secret_mistakes(section.model_extra or {}, document, here)
        agents[section.name] = agent_use(section, folder)
    return agents


WRITTEN_OUT = "contains a secret, and this value is stored and shown in reports."
INSTEAD = "Put it into an environment variable and name that: ${NAME}"
INSTEAD_OF_PARAM = (
    "Put it into an environment variable, and name that as ${NAME} or let the experiment read it."
)


def secret_mistakes(options: Mapping[str, Any], document: Document, place: Place) -> list[Mistake]:
    """A mistake for each option that holds a secret in plain text. The value is not repeated: a message may end up in a log."""
    return [document.mistake((*place, *option), WRITTEN_OUT, INSTEAD) for option in plain_secrets(options)]


def agent_use(section: AgentSection, folder: Path) -> AgentUse:
    """The noun for a checked definition. `cassette` and `concurrency` become options, as the runner and the agent read them there."""
    # A price of 0 is a price; one that is not given is unknown, and the two must not be confused.
    price = {k: v for k, v in section.price.model_dump().items() if v is not None} if section.price else None
    options = dict(section.model_extra or {})
    if section.cassette is not None:
        options["cassette"] = section.cassette
    if section.concurrency is not None:
        options["concurrency"] = section.concurrency
    resources = section.resources.to_noun() if section.resources else None
    return AgentUse(section.name, section.type, options, section.version, price, str(folder), resources)
