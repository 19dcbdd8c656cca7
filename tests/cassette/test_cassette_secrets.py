"""No secret reaches a cassette, wherever a program sends it and however a server repeats it."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.command import Assay
from tests.load.faulty import JSON, SSE, Guest, chunk, event, faulty, head, with_length

from assay.cassette.player import Player
from assay.cassette.proxy import document_of
from assay.cassette.redaction import ExchangeRedaction, spread_changes
from assay.cassette.tape import RecordedExchange, line_of, read_tape
from assay.cassette.writer import CassetteWriter
from assay.http.server import HttpRequest
from assay.model.redaction import Redaction

PATH = "/v1/chat/completions"
SECRET = "Zq8/tR4+wL1xP7vN"
"""With signs that JSON, URLs and base64 write differently."""


def exchange(body: Any = None, answer: str | list[str] = "ok", path: str = PATH) -> RecordedExchange:
    texts = [answer] if isinstance(answer, str) else answer
    pieces = tuple((float(n), text) for n, text in enumerate(texts))
    return RecordedExchange("POST", path, body, 200, {"content-type": "x"}, pieces)


def stored(
    one: RecordedExchange, headers: dict[str, str] | None = None, known: Redaction | None = None
) -> str:
    """The line of a cassette, as a recorder writes it."""
    redaction = ExchangeRedaction(known or Redaction())
    redaction.learn_request(headers or {}, one.path, one.body)
    redacted = redaction.redact(one)
    assert redaction.redact(redacted) == redacted
    return line_of(redacted)


def body(**keys: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}], **keys}


def tool(**keys: Any) -> dict[str, Any]:
    return body(tools=[{"type": "mcp", "server_url": "https://mcp.example/sse", **keys}])


REQUESTS: dict[str, tuple[RecordedExchange, dict[str, str]]] = {
    "header": (exchange(body()), {"authorization": f"Bearer {SECRET}"}),
    "cookie": (exchange(body()), {"cookie": f"theme=dark; sid={SECRET}"}),
    "query": (exchange(body(), path=f"{PATH}?api_key={quote(SECRET, safe='')}"), {}),
    "field": (exchange(body(api_key=SECRET)), {}),
    "nested field": (exchange(body(extra=[{"credentials": {"client_secret": SECRET}}])), {}),
    "list of a field": (exchange(body(authorization=[SECRET])), {}),
    "header of a tool": (exchange(tool(headers={"X-Auth": f"Bearer {SECRET}"})), {}),
    "pair of a tool": (exchange(tool(headers=[{"name": "X-Api-Key", "value": SECRET}])), {}),
    "authorization of a tool": (exchange(tool(authorization=SECRET)), {}),
    "form": (exchange(f"api_key={quote(SECRET, safe='')}&q=1"), {}),
}
DELTA: dict[str, Callable[[str], dict[str, Any]]] = {
    "openai": lambda text: {"choices": [{"index": 0, "delta": {"content": text}}]},
    "openai arguments": lambda text: {
        "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}}]
    },
    "anthropic": lambda text: {"type": "content_block_delta", "index": 0, "delta": {"text": text}},
    "ollama": lambda text: {"message": {"role": "assistant", "content": text}, "done": False},
}
ENCODED: dict[str, str] = {
    "as it is": SECRET,
    "in JSON": json.dumps({"you sent": SECRET}),
    "in JSON in JSON": json.dumps(json.dumps({"a": SECRET})),
    "escaped slashes": SECRET.replace("/", "\\/"),
    "URL": f"https://host/?x={quote(SECRET, safe='')}",
    "base64": base64.b64encode(f"user:{SECRET}".encode()).decode(),
    "URL-safe base64": base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
}


def forms() -> list[str]:
    """What to search for: every form of the secret, and halves of it."""
    encoded = [
        SECRET,
        quote(SECRET, safe=""),
        SECRET.replace("/", "\\/"),
        base64.b64encode(SECRET.encode()).decode()[:16],
    ]
    return [*encoded, SECRET[:8], SECRET[8:]]


def secrets_in(line: str) -> list[str]:
    document = json.loads(line)
    pieces = "".join(text for _, text in document["response"]["pieces"])
    said = "".join(_strings(pieces))
    return [form for form in forms() if any(form in text for text in (line, pieces, said))]


def _strings(text: str) -> list[str]:
    """All strings in the JSON documents of a stream, as a client puts them together."""
    found: list[str] = []

    def collect(value: Any) -> None:
        if isinstance(value, str):
            found.append(value)
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            collect(item)

    for line in text.splitlines():
        payload = line.removeprefix("data: ")
        if payload.startswith("{"):
            collect(json.loads(payload))
    return found


@pytest.mark.parametrize("place", REQUESTS)
def test_what_a_program_sends_as_a_secret_is_neither_in_the_request_nor_in_the_answer(place: str) -> None:
    one, headers = REQUESTS[place]
    answer = json.dumps({"error": f"no such key: {SECRET}", SECRET: "as a key", "list": [SECRET]})
    line = stored(
        RecordedExchange(
            "POST", one.path, one.body, 401, {"content-type": f"x; k={SECRET}"}, ((0.0, answer),)
        ),
        headers,
    )
    assert secrets_in(line) == []
    json.loads(json.loads(line)["response"]["pieces"][0][1])


@pytest.mark.parametrize("way", ENCODED)
def test_a_secret_is_found_however_the_server_writes_it(way: str) -> None:
    for answer in (ENCODED[way], json.dumps({"said": ENCODED[way]})):
        assert secrets_in(stored(exchange(body(api_key=SECRET), answer))) == []


@pytest.mark.parametrize("dialect", DELTA)
@pytest.mark.parametrize("way", ["as it is", "in JSON", "base64"])
@given(data=st.data())
def test_a_secret_in_small_parts_of_a_stream_is_found(dialect: str, way: str, data: st.DataObject) -> None:
    text = f"Your key is {ENCODED[way]}, it is safe."
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=30).map(sorted))
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    lines = [json.dumps(DELTA[dialect](part)) + "\n" for part in parts]
    if dialect != "ollama":
        lines = [f"data: {line}\n" for line in lines] + ["data: [DONE]\n\n"]
    whole = "".join(lines)
    at = data.draw(st.lists(st.integers(0, len(whole)), max_size=10).map(sorted))
    pieces = [whole[a:b] for a, b in zip([0, *at], [*at, len(whole)], strict=True)]
    line = stored(exchange(body(api_key=SECRET), pieces))
    assert secrets_in(line) == []
    kept = "".join(piece for _, piece in json.loads(line)["response"]["pieces"])
    said = "".join(part for part in _strings(kept) if part not in ("assistant", "content_block_delta"))
    assert said.startswith("Your key is ")
    assert said.endswith("it is safe.")
    assert "[redacted]" in said
    assert len(_strings(kept)) == len(_strings(whole))


@given(
    st.lists(st.text("abc", max_size=4), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 9), st.text("xyz", max_size=3)), max_size=4),
)
def test_changed_text_is_cut_into_as_many_pieces_and_nothing_else_is_lost(
    texts: list[str], edits: list[tuple[int, str]]
) -> None:
    whole = "".join(texts)
    cuts = sorted({min(at, len(whole)) for at, _ in edits})
    olds = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    changes = [(old, edits[n % len(edits)][1] if n % 2 and old else old) for n, old in enumerate(olds)]
    spread = spread_changes(texts, changes)
    assert "".join(spread) == "".join(new for _, new in changes)
    assert len(spread) == len(texts)


def test_text_around_a_secret_keeps_its_times() -> None:
    known = Redaction([SECRET])
    parts = ["hello ", "the key ", SECRET[:5], SECRET[5:], " and ", "more"]
    one = exchange(None, [f"data: {json.dumps(DELTA['openai'](part))}\n\n" for part in parts])
    pieces = ExchangeRedaction(known).redact(one).pieces
    kept = [_strings(text) for _, text in pieces]
    assert kept == [["hello "], ["the key "], [""], ["[redacted]"], [" and "], ["more"]]
    assert [at for at, _ in pieces] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_tokens_that_a_server_issues_are_removed_but_not_tokens_of_a_language_model() -> None:
    answer = {
        "access_token": "issued-4711-abcdef", "note": "use issued-4711-abcdef",
        "choices": [{"logprobs": {"content": [{"token": "tokenisation-1", "logprob": -0.1}]}}],
    }  # fmt: skip
    line = stored(exchange(body(), json.dumps(answer)))
    assert "issued-4711" not in line
    assert "tokenisation-1" in line


def test_log_probabilities_do_not_tell_a_secret_token_by_token() -> None:
    tokens = [
        {"token": part, "logprob": -0.1, "bytes": [*part.encode()]} for part in ("Zq8/", "tR4+wL1x", "P7vN")
    ]
    line = stored(
        exchange(body(api_key=SECRET), json.dumps({"choices": [{"logprobs": {"content": tokens}}]}))
    )
    assert "tR4+wL1x" not in line
    assert str([*b"Zq8/"])[1:-1] not in line


def test_what_has_the_shape_of_a_key_is_removed_from_prompts_and_answers() -> None:
    key = "sk-proj-4fJ7dK2mQ9xW1zR8aB3c"
    line = stored(exchange(body(user=key), f"not valid: {key}"))
    assert key not in line
    assert line.count("[redacted]") == 2


@pytest.mark.parametrize("appends", [False, True])
def test_a_token_that_is_used_later_is_removed_from_what_was_stored_before(
    tmp_path: Path, appends: bool
) -> None:
    path = tmp_path / "c.jsonl"
    parts = [{"text": part} for part in ("tick", "et-08", "15-xyz")]
    early = [
        exchange(body(), json.dumps({"ticket": "ticket-0815-xyz"})),
        exchange(body(), "".join(map(json.dumps, parts))),
    ]
    early.append(exchange(body(), [f"data: {json.dumps(part)}\n\n" for part in parts]))
    with contextlib.ExitStack() as stack:
        writer = stack.enter_context(CassetteWriter(path, Redaction()))
        for one in early:
            writer.add(one)
        assert "ticket-0815-xyz" in path.read_text()
        if appends:
            writer = stack.enter_context(CassetteWriter(path, Redaction(), appends=True))
        writer.learn_request({"authorization": "Bearer ticket-0815-xyz"}, PATH, None)
        assert "ticket-0815-xyz" not in path.read_text()
        assert "15-xyz" not in line_of(read_tape(path)[2])
        writer.add(exchange(body(), "ticket-0815-xyz again"))
    assert "ticket-0815-xyz" not in path.read_text()
    assert [len(one.pieces) for one in read_tape(path)] == [1, 1, 3, 1]
    assert os.listdir(tmp_path) == ["c.jsonl"]


def test_a_program_that_signs_every_request_anew_is_recorded_without_its_signatures(tmp_path: Path) -> None:
    with CassetteWriter(tmp_path / "c.jsonl", Redaction()) as writer:
        for number in range(50):
            signature = f"signed-7f3A-{number}"
            writer.learn_request({"authorization": signature}, PATH, None)
            writer.add(exchange(body(n=number), f"{signature} is wrong"))
    assert "7f3A" not in (tmp_path / "c.jsonl").read_text()


def test_a_new_cassette_is_for_its_owner_only_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with CassetteWriter(path, Redaction()) as writer:
        writer.add(exchange(body()))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    with CassetteWriter(path, Redaction(), appends=True) as writer:
        writer.add(exchange(body(user="the-user-4711")))
        writer.learn_request({"x-api-key": "the-user-4711"}, PATH, None)
    assert "4711" not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@pytest.mark.parametrize("place", REQUESTS)
@pytest.mark.parametrize("other", ["another-key-of-2027", SECRET, "sk-replayed-by-assay"])
def test_a_replay_finds_the_answer_with_another_secret(place: str, other: str) -> None:
    one, headers = REQUESTS[place]
    redaction = ExchangeRedaction(Redaction())
    redaction.learn_request(headers, one.path, one.body)
    recorded = redaction.redact(one)
    player = Player([redaction.redact(exchange(body(n=2))), recorded], known=Redaction())

    def with_other(text: str) -> str:
        return text.replace(SECRET, other).replace(quote(SECRET, safe=""), quote(other, safe=""))

    asked = json.loads(with_other(json.dumps(one.body)))
    path = with_other(one.path)
    player.learn_from({name: with_other(value) for name, value in headers.items()}, path, asked)
    assert player.find("POST", path, asked) == recorded
    assert player.misses == []


def test_a_prompt_with_a_secret_matches_only_prompts_that_differ_in_it() -> None:
    known = Redaction([SECRET])
    prompts = ["The password is PLACE, right?", "The password is PLACE, wrong?"]
    recorded = [
        ExchangeRedaction(known).redact(exchange(body(user=p.replace("PLACE", SECRET)))) for p in prompts
    ]
    player = Player(recorded, known=Redaction())
    right, wrong = (p.replace("PLACE", "other-word") for p in prompts)
    assert player.find("POST", PATH, body(user=wrong)) == recorded[1]
    assert player.find("POST", PATH, body(user=right)) == recorded[0]
    assert player.find("POST", PATH, body(user=prompts[0].replace("PLACE", "two words"))) is None


@pytest.mark.parametrize("levels", [150, 500, 5000, 100_000])
def test_json_of_any_depth_is_recorded_without_secrets(tmp_path: Path, levels: int) -> None:
    text = "[" * levels + json.dumps(SECRET) + "]" * levels
    incoming = HttpRequest("POST", PATH, {"x-api-key": SECRET}, text.encode())
    with CassetteWriter(tmp_path / "c.jsonl", Redaction()) as writer:
        writer.learn_request(incoming.headers, incoming.target, document_of(incoming))
        writer.add(exchange(document_of(incoming), text))
    assert "tR4" not in (tmp_path / "c.jsonl").read_text()
    assert len(read_tape(tmp_path / "c.jsonl")) == 1


def test_an_answer_that_is_no_text_is_replayed_byte_by_byte(assay: Assay) -> None:
    sound = bytes(range(256)) * 300
    program = assay.write(
        "program.py",
        "import os, hashlib, urllib.request\n"
        "asked = urllib.request.Request(os.environ['OPENAI_BASE_URL'] + '/audio/speech', b'{\"input\": \"hi\"}')\n"
        "print(hashlib.sha256(urllib.request.urlopen(asked).read()).hexdigest())\n",
    )
    command = ["--", sys.executable, str(program)]
    with faulty(lambda guest: guest.say(with_length(sound, b"content-type: audio/mpeg\r\n"))) as server:
        recorded = assay("record", "--upstream", server.url, *command)
    replayed = assay("replay", *command)
    assert recorded.out == replayed.out == hashlib.sha256(sound).hexdigest() + "\n", replayed.err


def test_a_secret_in_an_answer_that_is_no_text_is_removed() -> None:
    pieces = ((0.0, "\x00\xffID3 Zq8/tR"), (1.0, "4+wL1xP7vN\xfe"))
    one = RecordedExchange("POST", PATH, body(api_key=SECRET), 200, {}, pieces, is_binary=True)
    redaction = ExchangeRedaction(Redaction([SECRET]))
    assert redaction.redact(one).pieces == ((0.0, "\x00\xffID3 "), (1.0, "[redacted]\xfe"))


PROGRAM = """
import json, os, sys, urllib.request
for stream in (False, True):
    for n in range(3):
        body = {"messages": [{"role": "user", "content": f"call {n} with " + os.environ["OPENAI_API_KEY"]}], "stream": stream,
                "api_key": os.environ["BODY"], "tools": [{"type": "mcp", "headers": {"X-Key": os.environ["TOOL"]}}]}
        asked = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions?sig=" + os.environ["QUERY"],
            json.dumps(body).encode(), {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "cookie": "sid=" + os.environ["COOKIE"]})
        print(len(urllib.request.urlopen(asked).read()) > 0)
"""


def repeating(guest: Guest) -> None:
    """Says everything that it was told once more, whole or three characters at a time."""
    start, _, sent = guest.request.partition(b"\r\n\r\n")
    told = start.decode() + sent.decode()
    if json.loads(sent)["stream"]:
        parts = [told[at : at + 3] for at in range(0, len(told), 3)]
        events = [chunk(event(DELTA["openai"](part))) for part in parts]
        guest.say(head(SSE, b"transfer-encoding: chunked\r\n"), *events, b"0\r\n\r\n")
    else:
        guest.say(with_length(json.dumps({"choices": [{"message": {"content": told}}]}).encode(), JSON))


def test_a_recorded_program_leaves_none_of_its_secrets_in_the_cassette(assay: Assay) -> None:
    names = ("OPENAI_API_KEY", "BODY", "TOOL", "QUERY", "COOKIE")
    values = {name: f"{name[:4].lower()}-7f3A-{n}-Kd82mQ" for n, name in enumerate(names)}
    program = ["--", sys.executable, str(assay.write("program.py", PROGRAM))]
    with faulty(repeating) as server:
        recorded = assay("record", "--upstream", server.url, *program, cwd=assay.folder, **values)
    assert recorded.code == 0, recorded.err
    text = (assay.folder / "cassette.jsonl").read_bytes().decode()
    said = "".join(
        "".join(_strings("".join(t for _, t in one.pieces)))
        for one in read_tape(assay.folder / "cassette.jsonl")
    )
    assert [value for value in values.values() if value in text or value in said] == []
    assert "7f3A" not in text + said
    others = {name: f"{value}-of-the-replay" for name, value in values.items()}
    replayed = assay("replay", *program, cwd=assay.folder, **others)
    assert (replayed.code, replayed.out) == (0, recorded.out), replayed.err
