"""The keys of a case, as people write it.

`cases` reads rows by the names and aliases declared here, `json_schema` publishes them for editors, and the reference pages document
them, so a key is added or renamed in this module only. Cases come in many thousands, so they are not validated through these models
one by one; `cases` checks what matters by hand.
"""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from assay.spec.schema import Names, no_items
from assay.spec.scorers import Scorers


class ToolSection(BaseModel):
    """A tool that the agent may call; OpenAI's `{type: function, function: {…}}` and Anthropic's `input_schema` are read, too."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    name: str = Field(description="Name of the tool.", examples=["lookup_order"])
    description: str = Field("", description="What it does, for the model.", examples=["Find an order."])
    parameters: dict[str, Any] = Field(
        default_factory=dict,
        description="JSON schema of the arguments.",
        examples=[{"type": "object", "properties": {"id": {"type": "string"}}}],
    )


class TurnSection(BaseModel):
    """One turn of a conversation; a turn that is plain text is its input."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    input: Any = Field(
        validation_alias=AliasChoices("input", "question", "prompt", "user", "content"),
        description="What the agent is asked.",
        examples=["And by when?"],
    )
    expected: Any = Field(
        None,
        validation_alias=AliasChoices("expected", "answer", "target", "ideal"),
        description="The correct output of this turn.",
        examples=["14 days"],
    )
    scorer: Scorers = Field(
        default_factory=no_items,
        description="Scorers of this turn. Default: those of the benchmark.",
        examples=["contains"],
    )


class CaseSection(BaseModel):
    """One input and its correct output. Further keys are metadata: the agent receives them as params, scorers may read them."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    id: str | float | None = Field(
        None, description="Unique in the benchmark. Default: the number of the case.", examples=["refund-17"]
    )
    input: Any = Field(
        None,
        validation_alias=AliasChoices("input", "question", "prompt"),
        description="What the agent is asked: text, or any structure. Needed unless there are `turns`.",
        examples=["How much is refunded?"],
    )
    expected: Any = Field(
        None,
        validation_alias=AliasChoices("expected", "answer", "target", "ideal"),
        description="The correct output; a list of texts means that each of them is correct.",
        examples=["12.50"],
    )
    turns: list[Any] | None = Field(
        None,
        min_length=1,
        description="A conversation: its turns in order; see Turn.",
        examples=[["Hello", {"input": "And by when?", "expected": "14 days"}]],
    )
    tools: list[Any] | None = Field(
        None,
        description="Tools that the agent may call; see Tool.",
        examples=[[{"name": "lookup_order", "parameters": {"type": "object"}}]],
    )
    files: str | list[str] | dict[str, str] | None = Field(
        None,
        description="Files that belong to the case, as paths or as name: path, from the folder of the cases. The agent receives absolute paths; chat agents put the text into the message.",
        examples=[["invoice.txt"]],
    )
    tags: Names | None = Field(
        None, description="Tags by which `--tag` selects cases.", examples=[["refund", "hard"]]
    )


class ScoredKeys(BaseModel):
    """Metadata of a case that some scorers read; agents never receive what gives the answer away."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    choices: Any = Field(
        None, description="Scorer `choice`: the choices to choose from.", examples=[["Paris", "Rome"]]
    )
    expected_calls: Any = Field(
        None,
        description="Scorer `tool_calls`: the calls that must be made. Hidden from agents.",
        examples=[[{"name": "lookup_order", "arguments": {"id": "7"}}]],
    )
    tests: Any = Field(
        None,
        description="Scorer `code`: Python source with asserts or test functions, or a list of {call, expected}. Hidden from agents.",
        examples=["assert add(1, 2) == 3"],
    )
    entry_point: str | None = Field(
        None,
        description="Scorer `code`: the function that is passed to `check` of the tests.",
        examples=["add"],
    )
    solution: Any = Field(
        None,
        description="A correct output for `assay suite check`, where `expected` is none. Hidden from agents.",
        examples=["def add(a, b): return a + b"],
    )
