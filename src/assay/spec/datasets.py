"""Data sets of prompts: what virtual users say, in one request or in several that follow each other.

`assay load --dataset FILE` reads them. A text file has one prompt a line; .jsonl and .csv files have a row for each request or session.
The result is a `UserSession` for each, with one `SessionTurn` for each request in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.model.conversation import SessionTurn, UserSession
from assay.spec.load_settings import MOST_TOKENS, sendable
from assay.spec.rows import FileMistakes, csv_rows, first_of, is_json_lines, json_rows, kind_of_file, readable
from assay.spec.traces import SESSION, delay_of

PROMPT_KEYS = ("prompt", "input", "question", "text")
_NO_PROMPT = "'prompt', 'input', 'question' or 'text'"
_MOST = ("max_tokens", "max_output_tokens", "output_tokens", "output_length")


def read_sessions(path: Path) -> tuple[UserSession, ...]:
    """A session for each line of a text file, or for each row of a .jsonl or .csv file.

    Rows with the same `session` make one session together, in their order. A row has a prompt, `messages` or `turns`, and optionally
    `max_tokens` and `delay`. `messages` is a chat that is sent in one request; if it has several messages of the user and none of
    the assistant, they are sent one after the other.
    """
    wrong = FileMistakes(path)
    sessions: list[list[SessionTurn]] = []
    by_id: dict[str, list[SessionTurn]] = {}
    for line, row in _rows(path, wrong):
        try:
            turns = _turns(row)
        except ValueError as error:
            wrong.add(line, str(error))
            continue
        session = first_of(row, SESSION) if isinstance(row, Mapping) else None
        if session is not None and str(session) in by_id:
            by_id[str(session)].extend(turns)
            continue
        sessions.append(turns)
        if session is not None:
            by_id[str(session)] = turns
    if not sessions and not wrong.mistakes:
        wrong.add(None, "has no prompts")
    wrong.refuse()
    return tuple(UserSession(tuple(turns)) for turns in sessions)


def _rows(path: Path, wrong: FileMistakes) -> Iterator[tuple[int, Any]]:
    if kind_of_file(path) == ".csv":
        yield from csv_rows(path, PROMPT_KEYS, f"has no column {_NO_PROMPT}", wrong)
    elif is_json_lines(path):
        yield from json_rows(path, wrong)
    else:
        with readable(path) as file:
            lines = file.read().split("\n")
        yield from ((number, line.rstrip("\r")) for number, line in enumerate(lines, 1) if line.strip())


def _turns(row: object) -> list[SessionTurn]:
    """The turns that one row stands for; ValueError says what is wrong with it."""
    if isinstance(row, str):
        return [SessionTurn(sendable(row))]
    if not isinstance(row, Mapping):
        raise ValueError(f"has no {_NO_PROMPT}")
    most, delay = _most_tokens(row), delay_of(row)
    if (turns := row.get("turns")) is not None:
        if not isinstance(turns, list) or not turns:
            raise ValueError("'turns' is not a list with at least one turn")
        return [_turn(turn, most) for turn in turns]
    if (messages := row.get("messages")) is not None:
        return _from_messages(messages, most, delay)
    for name in PROMPT_KEYS:
        if isinstance(row.get(name), str):
            return [SessionTurn(sendable(row[name]), max_tokens=most, delay=delay)]
    if any(name in row for name in PROMPT_KEYS):
        raise ValueError("the prompt is empty")
    raise ValueError(f"has no {_NO_PROMPT}, and neither 'messages' nor 'turns'")


def _turn(turn: object, most: int | None) -> SessionTurn:
    """A turn as people write it: bare text, or an object that may also limit the answer or say how long to wait."""
    if isinstance(turn, str):
        return SessionTurn(sendable(turn), max_tokens=most)
    if isinstance(turn, Mapping):
        for name in ("content", *PROMPT_KEYS):
            if isinstance(turn.get(name), str):
                return SessionTurn(
                    sendable(turn[name]), max_tokens=_most_tokens(turn) or most, delay=delay_of(turn)
                )
    raise ValueError("a turn is neither text nor an object with 'content' or 'text'")


def _from_messages(messages: object, most: int | None, delay: float | None) -> list[SessionTurn]:
    """Turns from a list of messages in the form of chat APIs.

    A conversation that includes answers is one request with a history. Several questions without answers are a session: each
    is asked once the one before it is answered, so that the server's own answers become the history.
    """
    if not isinstance(messages, list) or not messages:
        raise ValueError("'messages' is not a list with at least one message")
    if all(isinstance(message, str) for message in messages):
        return [SessionTurn(sendable(message), max_tokens=most) for message in messages]
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise ValueError("a message is not an object with 'role' and 'content'")
    questions = [message for message in messages if message["role"] == "user"]
    others = {message["role"] for message in messages} - {"user", "system", "developer"}
    if len(questions) < 2 or others:
        return [SessionTurn(_check_messages(messages), max_tokens=most, delay=delay)]
    # Several questions without answers between them are asked one by one; what stands before the first, such as a system
    # prompt, belongs to it, and later requests repeat it as part of the history.
    begin = messages.index(questions[0]) + 1
    first = SessionTurn(_check_messages(messages[:begin]), max_tokens=most, delay=delay)
    return [
        first,
        *(SessionTurn(_check_messages([message]), max_tokens=most) for message in messages[begin:]),
    ]


def _check_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    for message in messages:
        if isinstance(message.get("content"), str) and message["role"] == "user":
            sendable(message["content"])
    return [dict(message) for message in messages]


def _most_tokens(row: Mapping[str, Any]) -> int | None:
    """The maximum length of the answer in tokens; None where the row does not say."""
    written = first_of(row, _MOST)
    if written is None:
        return None
    try:
        number = int(str(written))
    except ValueError:
        number = 0
    if not 1 <= number <= MOST_TOKENS:
        raise ValueError(f"'max_tokens' is '{written}', not a number between 1 and {MOST_TOKENS}")
    return number
