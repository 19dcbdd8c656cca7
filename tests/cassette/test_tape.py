from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.command import AssayInline
from tests.wording import Wording

from assay.cassette.player import Player
from assay.cassette.program import upstreams
from assay.cassette.proxy import _Taken, _texts, destination
from assay.cassette.tape import CassetteError, RecordedExchange, line_of, read_pace, read_tape
from assay.http.server import HttpRequest
from assay.model.redaction import Redaction


def exchange(prompt: str = "hi", answer: str = "ho", **keys: object) -> RecordedExchange:
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], **keys}
    return RecordedExchange(
        "POST", "/v1/chat/completions", body, 200, {"content-type": "x"}, ((0.1, answer),)
    )


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    odd = exchange("a\u2028b\u0085", "ünï\u2028\n😀")
    cut = RecordedExchange("GET", "/v1/models", None, 500, {}, (), is_cut=True)
    half = exchange("half a character: \ud83d", "ok")
    pieces = ((0.1, "\x00\xff\xd8"), (0.2, "\xfe"))
    audio = RecordedExchange("POST", "/v1/audio/speech", {"input": "hi"}, 200, {}, pieces, is_binary=True)
    path = tmp_path / "c.jsonl"
    path.write_text("".join(line_of(one) for one in (odd, cut, half, audio)), encoding="utf-8")
    assert read_tape(path) == [odd, cut, half, audio]


def test_every_damaged_line_is_named(assay_inline: AssayInline, wording: Wording) -> None:
    good = line_of(exchange())
    newer = good.replace('"assay_cassette": 1', '"assay_cassette": 9')
    lines = [good, "{broken\n", "[1]\n", newer, '{"assay_cassette": 1, "request": {}}\n', "\n", good]
    binary = good.encode().replace(b"ho", b"\xff\xfe")
    assay_inline.write("c.jsonl", "".join(lines).encode() + binary + good.encode()[:40])
    refusal = assay_inline("replay", "--cassette", "c.jsonl", "--", "true").refusal
    told = [line.removeprefix("Error: ").partition(": ")[0] for line in refusal.splitlines()]
    assert told == [f"c.jsonl:{number}" for number in (2, 3, 4, 5, 6, 8, 9)]
    assert "version 9" in refusal
    assert "'response'" in refusal
    assert "UTF-8" in refusal
    wording(refusal, near="c.jsonl:4")
    wording(refusal, near="c.jsonl:5")


@pytest.mark.parametrize(("content", "problem"), [(None, "does not exist"), ("", "is empty")])
def test_a_cassette_with_nothing_in_it_is_reported(
    assay_inline: AssayInline, content: str | None, problem: str
) -> None:
    if content is not None:
        assay_inline.write("c.jsonl", content)
    assert problem in assay_inline("replay", "--cassette", "c.jsonl", "--", "true").refusal


@pytest.mark.parametrize("recorded", ["[redacted]", "of-the-session"])
def test_a_key_is_no_part_of_the_question_whether_the_cassette_has_it_or_not(recorded: str) -> None:
    body = {"messages": [], "refresh_token": "of-then", "user": recorded}
    old = RecordedExchange("POST", "/v1/chat", body, 200, {}, ())
    player = Player([old, exchange()], known=Redaction())
    asked = {**body, "refresh_token": "of-now", "user": "of-the-session"}
    player.learn_from({"x-session-token": "of-the-session"}, "/v1/chat", asked)
    assert player.find("POST", "/v1/chat", asked) == old


def test_the_n_th_time_gets_the_n_th_recording(wording: Wording) -> None:
    player = Player([exchange(answer="one"), exchange(answer="two")], known=Redaction())
    body = exchange().body
    found = [player.find("POST", "/v1/chat/completions", body) for _ in range(4)]
    assert [one.pieces[0][1] if one else None for one in found] == ["one", "two", None, None]
    assert [re.findall(r"(\d) times", miss) for miss in player.misses] == [["3", "2"], ["4", "2"]]
    wording(player.misses[0])


def test_the_limit_of_tokens_matches_by_either_of_its_names() -> None:
    player = Player([exchange(max_tokens=50), exchange(max_completion_tokens=70)])
    path = "/v1/chat/completions"
    for asked in (exchange(max_completion_tokens=50), exchange(max_tokens=70)):
        assert player.find("POST", path, asked.body) is not None
    assert player.find("POST", path, exchange(max_tokens=60).body) is None
    assert player.misses[0].endswith(": max_tokens.")
    both = exchange(max_tokens=50, max_completion_tokens=50)
    assert player.find("POST", path, both.body) is None


def test_a_running_number_makes_no_other_request() -> None:
    asked = {"id": "7", "input": "x"}
    recorded = RecordedExchange("POST", "/ask", {"id": "1", "input": "x"}, 200, {}, ())
    assert Player([recorded], known=Redaction()).find("POST", "/ask", asked) == recorded


@pytest.mark.parametrize(("text", "pace"), [("original", 1.0), ("none", 0.0), ("0.5", 0.5), (2, 2.0)])
def test_a_pace_is_named_or_a_number(text: object, pace: float) -> None:
    assert read_pace(text) == pace


@pytest.mark.parametrize("text", ["fast", "-1", "1e9", "nan"])
def test_a_pace_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(CassetteError, match=r"original.*none"):
        read_pace(text)


@pytest.mark.parametrize(
    ("base", "path", "goes_to"),
    [
        ("https://router.example/api/v1", "/v1/chat/completions", "https://router.example/api/v1/chat/completions"),
        ("http://host/openai", "/v1/chat/completions", "http://host/openai/chat/completions"),
        ("http://host:1/v1/", "/v1/models?a=b", "http://host:1/v1/models?a=b"),
    ],
)  # fmt: skip
def test_calls_go_where_they_were_meant_to(base: str, path: str, goes_to: str) -> None:
    incoming = HttpRequest("POST", path, {}, b"")
    assert destination(incoming, upstreams({"OPENAI_BASE_URL": base}, None)) == goes_to


@pytest.mark.parametrize(
    ("host", "url"),
    [("0.0.0.0", "http://127.0.0.1:11434"), ("gpu:9000", "http://gpu:9000"), ("", "http://127.0.0.1:11434")],
)
def test_ollama_is_where_its_own_variable_says(host: str, url: str) -> None:
    assert upstreams({"OLLAMA_HOST": host}, None)["ollama"] == url


def test_the_three_protocols_go_to_their_own_providers() -> None:
    def goes_to(path: str, **headers: str) -> str:
        asked = HttpRequest("POST", path, {k.replace("_", "-"): v for k, v in headers.items()}, b"")
        return destination(asked, upstreams({}, None))

    assert goes_to("/v1/chat/completions") == "https://api.openai.com/v1/chat/completions"
    assert goes_to("/v1/messages") == "https://api.anthropic.com/v1/messages"
    assert goes_to("/v1/models", anthropic_version="1") == "https://api.anthropic.com/v1/models"
    assert goes_to("/api/chat") == "http://127.0.0.1:11434/api/chat"


def test_characters_that_arrive_in_halves_are_put_together() -> None:
    data = "aß😀b".encode()
    for cut in range(len(data) + 1):
        pieces = _texts(_Taken(pieces=[(0.0, data[:cut]), (1.0, data[cut:])], is_cut=False))
        assert pieces is not None
        texts = [text for _, text in pieces]
        assert "".join(texts) == "aß😀b"
        assert json.dumps(texts)


def test_an_answer_that_ends_within_a_character_is_text_only_if_it_was_cut_off() -> None:
    pieces = [(0.0, b"a"), (1.0, "ß".encode()[:1])]
    assert _texts(_Taken(pieces=pieces, is_cut=True)) == [(0.0, "a"), (1.0, "\ufffd")]
    assert _texts(_Taken(pieces=pieces, is_cut=False)) is None
