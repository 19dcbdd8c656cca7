"""A request as the messages of a chat, in the form that OpenAI's API made common; the dialects turn it into their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.files import UnreadableFile, read_bytes
from assay.model import Request
from assay.model.conversation import as_text, is_conversation
from assay.plugin import AgentError

Message = dict[str, Any]
_MOST_BYTES = 2**20


def chat_messages(request: Request, system: str | None) -> list[Message]:
    """The instructions, what was said before, and the input: text, or a list of messages of its own."""
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    messages += [{**turn, "content": as_text(turn.get("content"))} for turn in request.history]
    if is_conversation(request.input):
        messages += [dict(message) for message in request.input]  # type: ignore[attr-defined]
    else:
        messages.append({"role": "user", "content": as_text(request.input)})
    if request.files:
        attached = "\n\n".join(_format_attachment(name, Path(path)) for name, path in request.files.items())
        messages[-1]["content"] = f"{as_text(messages[-1].get('content'))}\n\n{attached}"
    return messages


def _format_attachment(name: str, path: Path) -> str:
    """Text files go into the message, as people paste them."""
    try:
        return f"File {name}:\n{read_bytes(path, _MOST_BYTES).decode()}"
    except UnreadableFile as error:
        raise AgentError(f"the file '{name}' {error.problem.removesuffix('.')}") from None
    except UnicodeDecodeError:
        raise AgentError(
            f"the file '{name}' is not text, and this agent type supports text files only"
        ) from None
