"""What the reference agent accepts: texts of users, and its own configuration."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

LONGEST = 20_000
"""Characters of a message; longer ones are refused before any pattern looks at them."""

_ATTACKS = re.compile(
    r"ignore\s+(?:all\s+|any\s+)?(?:previous|prior|above)\s+(?:instructions|rules)"
    r"|(?:reveal|print|show)\s+(?:me\s+)?(?:your|the)\s+system\s+prompt"
    r"|you\s+are\s+now\s+(?:dan|in\s+developer\s+mode)"
    r"|<\s*script\b|javascript\s*:|\bon(?:error|load)\s*="
    r"|(?:'|\")\s*(?:or|and)\s+[\w'\"]+\s*=\s*[\w'\"]+|;\s*drop\s+table\b|\bunion\s+select\b"
    r"|(?:\.\./){2,}|\$\(\s*(?:rm|curl|wget)\b|\{\{.*\}\}",
    re.IGNORECASE,
)
_ALLOWED_CONTROLS = "\n\r\t"


class ServiceMessage(BaseModel):
    """A message of a user. Strips blanks at the ends and normalises Unicode, so that look-alikes do not pass the patterns."""

    model_config = ConfigDict(str_strip_whitespace=True)

    text: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST)]

    @field_validator("text")
    @classmethod
    def _check(cls, text: str) -> str:
        text.encode("utf-8")
        normalized = unicodedata.normalize("NFKC", text)
        if any(
            unicodedata.category(character) in ("Cc", "Cf") for character in normalized.translate(_REMOVED)
        ):
            raise ValueError("has invisible characters")
        if _ATTACKS.search(normalized):
            raise ValueError("looks like an attack")
        return normalized


_REMOVED = {ord(character): None for character in (*_ALLOWED_CONTROLS, "\u200d", "\ufe0f")}
"""Line ends, tabs and what emoji are joined with are fine."""


class MessageValidator:
    """Validates messages by a pydantic model."""

    def validate(self, text: str) -> str:
        return ServiceMessage(text=text).text


class ToolSetting(BaseModel):
    """One tool in the configuration of an agent."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    timeout_seconds: float = Field(10.0, gt=0, le=600)


class AssistantConfig(BaseModel):
    """The configuration of an agent, as frameworks for agents have it."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    model: Annotated[str, StringConstraints(min_length=1)]
    temperature: float = Field(0.7, ge=0, le=2)
    top_p: float = Field(1.0, gt=0, le=1)
    max_tokens: int = Field(512, ge=1, le=200_000)
    memory: Literal["window", "summary", "search"] = "window"
    memory_messages: int = Field(20, ge=1)
    tools: list[ToolSetting] = Field(default_factory=list)

    @field_validator("tools")
    @classmethod
    def _are_different(cls, tools: list[ToolSetting]) -> list[ToolSetting]:
        names = [tool.name for tool in tools]
        if len(set(names)) < len(names):
            raise ValueError("has a tool twice")
        return tools


class SettingsValidator:
    """Validates configurations by a pydantic model."""

    def check(self, config: Mapping[str, Any]) -> Sequence[str]:
        try:
            AssistantConfig.model_validate(config)
        except ValidationError as error:
            return [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        return ()
