"""What the engine makes of the bytes that come back, however they are cut."""

from __future__ import annotations

import contextlib
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.load.faulty import (
    ANSWER,
    CHUNKED,
    DONE,
    END,
    FINISH,
    JSON,
    NDJSON,
    SSE,
    chunk,
    delta,
    event,
    head,
    openai,
    streamed,
    with_length,
)

from assay.load.answer import LARGEST_ANSWER, LARGEST_PIECE, Reply, Tokens, Trust
from assay.load.answer_text import text_of
from assay.load.response_head import BadReply


def fed(*pieces: bytes) -> tuple[Reply, bool]:
    """The piece with number n arrives at n."""
    reply = Reply()
    is_whole = False
    for at, piece in enumerate(pieces):
        assert not is_whole, "it was whole before its last byte"
        is_whole = reply.feed(piece, float(at))
    return reply, is_whole


def tokens_of(answer: bytes) -> Tokens:
    reply, is_whole = fed(answer)
    assert is_whole
    return reply.tokens()


def kind_of(answer: bytes) -> str:
    with pytest.raises(BadReply) as bad:
        tokens_of(answer)
    return str(bad.value)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted({place % len(data) for place in places} - {0}), len(data)]
    return [data[begin:end] for begin, end in pairwise(edges)]


WORDS = ("one", " two", " three", " four")
ANTHROPIC = [
    b"event: message_start\n" + event({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}}),
    b"event: content_block_start\n" + event({"type": "content_block_start", "content_block": {"type": "text", "text": ""}}),
    b"event: ping\n" + event({"type": "ping"}),
    *(b"event: content_block_delta\n" + event({"type": "content_block_delta", "delta": {"type": "text_delta", "text": word}}) for word in WORDS),
    b"event: message_delta\n" + event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}}),
    b"event: message_stop\n" + event({"type": "message_stop"}),
]  # fmt: skip
OLLAMA = [
    *(json.dumps({"model": "m", "response": word, "done": False}).encode() + b"\n" for word in WORDS),
    json.dumps({"model": "m", "response": "", "done": True, "context": list(range(2000)), "prompt_eval_count": 9, "eval_count": 4}).encode() + b"\n",
]  # fmt: skip
DIALECTS = {
    "openai": streamed(openai(WORDS)),
    "openai with spaces, comments and line ends of its own": streamed(
        [b": hello\r\n\r\n", *(one.replace(b"\n", b"\r\n") for one in openai(WORDS))]
    ),
    "openai's completions": streamed(
        [
            *(event({"choices": [{"text": word, "finish_reason": None}]}) for word in WORDS),
            event(
                {
                    "choices": [{"text": "", "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 9, "completion_tokens": 4},
                }
            ),
            DONE,
        ]
    ),
    "anthropic": streamed(ANTHROPIC),
    "ollama": head(NDJSON, CHUNKED) + b"".join(chunk(line) for line in OLLAMA) + END,
    "with a length": with_length(b"".join(openai(WORDS)), SSE),
    "chunk extensions and trailers": head(SSE, CHUNKED)
    + b"".join(chunk(one, b';name="va;lue"') for one in openai(WORDS))
    + b"0;last\r\nx-checksum: 1\r\ny: 2\r\n\r\n",
    "after 100-continue and 103": head(status=b"100 Continue")
    + head(b"link: </x>\r\n", status=b"103 Early Hints")
    + streamed(openai(WORDS)),
    "chunks that care for nothing": head(SSE, CHUNKED)
    + b"".join(
        chunk(b"".join(openai(WORDS))[at : at + 7]) for at in range(0, len(b"".join(openai(WORDS))), 7)
    )
    + END,
}


@pytest.mark.parametrize("name", DIALECTS)
@given(places=st.lists(st.integers(0, 100_000), max_size=60))
def test_every_dialect_is_read_the_same_wherever_its_bytes_are_cut(name: str, places: list[int]) -> None:
    pieces = cut(DIALECTS[name], places)
    reply, is_whole = fed(*pieces)
    assert is_whole
    tokens = reply.tokens()
    assert len(tokens.stamps) == len(WORDS)
    assert tokens.stamps == sorted(tokens.stamps)
    assert tokens.output == len(WORDS)
    assert tokens.input in (7, 9)


@pytest.mark.parametrize("name", ["openai", "anthropic", "ollama", "with a length"])
def test_a_token_has_the_time_of_its_first_byte(name: str) -> None:
    answer = DIALECTS[name]
    reply, _ = fed(*(answer[at : at + 1] for at in range(len(answer))))
    assert reply.tokens().stamps == [float(answer.index(b'"' + word.encode()) + 1) for word in WORDS]


@given(st.binary(max_size=400), st.lists(st.integers(0, 1000), max_size=8))
def test_bytes_of_any_kind_end_or_are_refused_but_never_break_the_engine(
    data: bytes, places: list[int]
) -> None:
    for begin in (b"", head(SSE, CHUNKED), head(SSE), head(b"content-length: 20\r\n", NDJSON)):
        for is_close_look in (True, False):
            reply = Reply(is_close_look)
            is_whole = False
            with contextlib.suppress(BadReply):
                for piece in cut(begin + data + b" ", places):
                    is_whole = is_whole or reply.feed(piece, 1.0)
                if is_whole:
                    assert reply.tokens().stamps == [1.0] * len(reply.tokens().stamps)


@pytest.mark.parametrize("size", [b"-5", b"-2", b"-1", b"", b"zz", b"5 5", b";", b"0x", b"\xff"])
def test_a_chunk_without_a_size_that_makes_sense_is_malformed(size: bytes) -> None:
    with pytest.raises(BadReply, match="malformed_http"):
        fed(head(SSE, CHUNKED) + size + b"\r\nabcdefgh\r\n" + END)


@pytest.mark.parametrize(
    "first",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 " + b"9" * 5000 + b"\r\n\r\n",
        head(b"content-length: -1\r\n"),
        head(b"content-length: " + b"9" * 5000 + b"\r\n"),
        head(b"content-length: 5\r\ncontent-length: 6\r\n"),
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000,
    ],
)
def test_what_is_not_http_is_malformed(first: bytes) -> None:
    with pytest.raises(BadReply, match="malformed_http"):
        fed(first)


def test_thousands_of_interim_answers_are_ignored() -> None:
    reply, is_whole = fed(head(status=b"102 Processing") * 3000 + ANSWER)
    assert is_whole
    assert len(reply.tokens().stamps) == 3


def test_more_than_was_announced_is_malformed() -> None:
    for surplus in (with_length(b"{}", JSON) + b"!", ANSWER + b"HTTP/1.1 200 OK\r\n\r\n"):
        with pytest.raises(BadReply, match="malformed_http"):
            fed(surplus)


def test_the_first_token_is_neither_the_role_nor_an_empty_piece() -> None:
    events = [
        delta(role="assistant"),
        delta(role="assistant", content=""),
        delta(content=None),
        delta(content="4"),
    ]
    reply, _ = fed(head(SSE, CHUNKED), *(chunk(one) for one in (*events, FINISH, DONE)), END)  # fmt: skip
    assert reply.tokens().stamps == [4.0]


def test_reasoning_and_calls_of_tools_are_content() -> None:
    calls = [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]
    events = [delta(reasoning_content="hm"), delta(content="4"), delta(tool_calls=calls), FINISH, DONE]
    assert len(tokens_of(streamed(events)).stamps) == 3


def test_content_that_quotes_json_is_one_piece() -> None:
    tricky = '"content":"x" {"error": 1} data: {"text":"y"}\n\n"content": "z"'
    found = tokens_of(streamed([delta(content=tricky), FINISH, DONE]))
    assert len(found.stamps) == 1


def test_several_choices_in_one_line_are_one_piece() -> None:
    both = event({"choices": [{"index": n, "delta": {"content": "x"}} for n in range(2)]})
    assert len(tokens_of(streamed([both, both, FINISH, DONE])).stamps) == 2


def test_without_usage_the_number_of_tokens_is_not_known() -> None:
    found = tokens_of(streamed(openai(usage=False)))
    assert found.output is None
    assert len(found.stamps) == 3


ERRORS = {
    "openai": [event({"error": {"message": "overloaded", "code": 503}})],
    "after some tokens": [delta(content="4"), event({"error": {"message": "out of memory"}}), DONE],
    "anthropic": [*ANTHROPIC[:4], b"event: error\n" + event({"type": "error", "error": {"type": "overloaded_error"}})],
    "vllm": [delta(content="4"), event({"object": "error", "message": "no", "code": 400}), DONE],
    "with other keys first": [event({"id": 1, "error": "no"}), DONE],
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_in_the_stream_is_an_error(name: str) -> None:
    assert kind_of(streamed(ERRORS[name])) == "error_in_stream"


def test_an_error_that_is_null_is_none() -> None:
    for text in (b'{"error": null, "choices": [{"delta": {"content": "4"}, "finish_reason": "stop"}]}',
                 b'{"error":null,"choices":[{"delta":{"content":"4"},"finish_reason":"stop"}]}'):  # fmt: skip
        assert len(tokens_of(streamed([b"data: " + text + b"\n\n", DONE])).stamps) == 1


BROKEN = {
    "not lines of the kind": ([b'{"choices": [{"delta": {"content": "4"}}]}\n', DONE], "malformed_stream"),
    "not json": ([b'data: {"choices": [{"delta": {"content": "4"}}\n\n', FINISH, DONE], "malformed_stream"),
    "last one torn": ([delta(content="4"), b'data: {"finish_reason": "stop"\n\n', b"data: }[DONE]\n\n"], "malformed_stream"),
    "too deep": ([delta(content="4"), b"data: " + b'{"content":"x","a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n\n", DONE], "malformed_stream"),
    "html": ([b"<html>busy</html>"], "malformed_stream"),
    "nothing": ([DONE], "empty"),
    "no content": ([delta(role="assistant", content=""), FINISH, DONE], "empty"),
    "no end": ([delta(content="4"), delta(content="5")], "incomplete"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_stream_that_is_not_what_was_asked_for_has_its_kind(name: str) -> None:
    events, kind = BROKEN[name]
    assert kind_of(streamed(events)) == kind


def test_numbers_too_long_to_be_numbers_of_tokens_break_nothing() -> None:
    usage = b'data: {"usage": {"completion_tokens": ' + b"9" * 10_000 + b"}}\n\n"
    assert kind_of(streamed([delta(content="4"), FINISH, usage, DONE])) == "malformed_stream"


def test_a_long_stream_is_counted_whole_but_not_kept() -> None:
    reply = Reply()
    reply.feed(head(SSE, CHUNKED), 0.0)
    for number in range(20_000):
        reply.feed(chunk(delta(content=f"token {number}")), float(number))
    assert len(reply.payload) < 600_000
    assert len(reply.reads) < 10_000
    for one in (
        FINISH,
        event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 20_000}}),
        DONE,
    ):
        reply.feed(chunk(one), 20_000.0)
    assert reply.feed(END, 20_001.0)
    tokens = reply.tokens()
    assert tokens.stamps == [float(number) for number in range(20_000)]
    assert tokens.output == 20_000


@pytest.mark.parametrize("size", range(0, 3000, 37))
def test_a_long_stream_may_be_looked_at_anywhere(size: int) -> None:
    """The look comes after 256 kB, and may fall just before the last lines."""
    filler = delta(content="x" * (256 * 1024 - 2000 + size))
    reply, is_whole = fed(head(SSE, CHUNKED), *(chunk(one) for one in (filler, *openai())), END)
    assert is_whole
    assert len(reply.tokens().stamps) == 4


def test_an_answer_without_end_is_cut_where_it_is_too_large() -> None:
    piece = chunk(delta(content="x" * 60_000))
    with pytest.raises(BadReply, match="too_large"):
        fed(head(SSE, CHUNKED), *[piece] * (2 * LARGEST_ANSWER // len(piece)))
    with pytest.raises(BadReply, match="too_large"):
        fed(head(JSON, b"content-length: 1073741824\r\n"), *[b" " * 65536] * (2 * LARGEST_PIECE // 65536))


def test_answers_without_a_body_end_with_their_head() -> None:
    for status in (b"204 No Content", b"304 Not Modified"):
        assert fed(head(status=status))[1]
    assert fed(with_length(b"", status=b"500 Oops"))[1]


def test_without_length_and_chunks_an_answer_ends_with_the_connection() -> None:
    reply, is_whole = fed(head(SSE), b"".join(openai()))
    assert not is_whole
    assert reply.is_whole_at_close()
    assert len(reply.tokens().stamps) == 3
    for other in (head(SSE, CHUNKED), head(b"content-length: 5\r\n")):
        assert not fed(other)[0].is_whole_at_close()


@pytest.mark.parametrize("name", DIALECTS)
def test_what_an_answer_says_is_found_in_every_dialect(name: str) -> None:
    reply, _ = fed(DIALECTS[name])
    assert text_of(reply.payload.decode()) == "".join(WORDS)


def test_what_an_answer_in_one_piece_says_is_found() -> None:
    for document in (
        {"choices": [{"message": {"content": "42"}}]},
        {"message": {"role": "assistant", "content": "42"}},
        {"content": [{"type": "text", "text": "42"}]},
        {"response": "42"},
        {"output": "42"},
    ):
        assert text_of(json.dumps(document)) == "42"
    assert text_of("42") == "42"


def compact(*words: str, usage: int | None = None) -> bytes:
    """As the fastest servers write it: no blanks, an object a chunk, an empty role first."""
    deltas = [{"role": "assistant", "content": ""}, *({"content": word} for word in words), {}]
    objects: list[dict[str, object]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    if usage is not None:
        objects.append({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": usage}})
    return streamed([*(tight({"object": "chat.completion.chunk", **one}) for one in objects), DONE])


def tight(document: object) -> bytes:
    return f"data: {json.dumps(document, separators=(',', ':'))}\n\n".encode()


ODD_WORDS = st.text(min_size=1, max_size=12) | st.sampled_from(
    ['"content":"', '\\"content\\":\\"', "}\n\n", '"error"', "[DONE]", '"completion_tokens":9', "0\r\n\r\n",
     '"object":"chat.completion.chunk"']
)  # fmt: skip


@given(st.lists(ODD_WORDS, min_size=1, max_size=8), st.none() | st.integers(0, 99))
def test_whichever_way_an_answer_is_looked_at_the_same_is_found(words: list[str], usage: int | None) -> None:
    answer = compact(*words, usage=usage)
    close = tokens_of(answer)
    quick = Reply(is_close_look=False)
    assert quick.feed(answer, 0.0)
    slowly, is_whole = fed(*(answer[at : at + 1] for at in range(len(answer))))
    assert is_whole
    bytewise = slowly.tokens()

    assert quick.tokens() == close
    assert (bytewise.output, bytewise.input) == (close.output, close.input)
    assert len(bytewise.stamps) == len(close.stamps) == len(words)


@pytest.mark.parametrize("empty", [1, 2, 3])
@pytest.mark.parametrize("is_close_look", [True, False])
def test_empty_pieces_are_not_counted_however_many_there_are(is_close_look: bool, empty: int) -> None:
    reply = Reply(is_close_look)
    assert reply.feed(compact("one", *[""] * (empty - 1), "two", "three", usage=3), 4.0)
    assert reply.tokens().stamps == [4.0] * 3


@pytest.mark.parametrize("is_close_look", [True, False])
def test_an_error_after_the_last_piece_is_seen_however_closely_is_looked(is_close_look: bool) -> None:
    answer = compact("one", " two", usage=2)
    told = tight({"error": {"message": "out of memory", "code": 500}})
    reply = Reply(is_close_look)
    assert reply.feed(answer.replace(chunk(DONE), chunk(told) + chunk(DONE)), 0.0)
    with pytest.raises(BadReply, match="error_in_stream"):
        reply.tokens()


def test_the_first_answers_and_one_in_128_are_looked_at_closely_and_all_once_trust_is_lost() -> None:
    trust = Trust()
    close = [trust.wants_a_close_look() for _ in range(1000)]
    assert all(close[:200])
    assert sum(close[200:]) == 6
    trust.lose()
    assert all(trust.wants_a_close_look() for _ in range(40))


@pytest.mark.parametrize("name", ["reasoning_content", "refusal"])
def test_pieces_under_another_name_are_counted_and_seen_by_a_close_look(name: str) -> None:
    others = [{name: "so"}, {name: "then"}]
    answer = named_pieces(others, ["one", "two", "three"])
    close = Reply()
    assert close.feed(answer, 1.0)
    tokens = close.tokens()
    assert len(tokens.stamps) == 5
    assert not tokens.is_plain


def named_pieces(others: list[dict[str, str]], words: list[str]) -> bytes:
    deltas = [{"role": "assistant", "content": ""}, *others, *({"content": word} for word in words)]
    objects = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": one}]} for one in deltas]
    return streamed([*map(tight, objects), DONE])


@pytest.mark.parametrize("is_close_look", [True, False])
def test_a_chunk_that_ends_in_the_middle_of_a_number_does_not_cut_the_number(is_close_look: bool) -> None:
    usage = tight({"object": "chat.completion.chunk", "choices": [], "usage": {"completion_tokens": 123}})
    cut = usage.index(b"123") + 1
    whole = compact("one", "two").replace(chunk(DONE), chunk(usage[:cut]) + chunk(usage[cut:]) + chunk(DONE))
    reply = Reply(is_close_look)
    assert reply.feed(whole, 0.0)
    assert reply.tokens().output == 123


@pytest.mark.parametrize("is_close_look", [True, False])
def test_an_error_between_two_pieces_is_seen_however_closely_is_looked(is_close_look: bool) -> None:
    answer = compact("one", "two", usage=2)
    second = answer.index(b'"two"')
    at = answer.rindex(b"\r\n", 0, answer.rindex(b"data:", 0, second) - 2) + 2
    told = chunk(tight({"error": {"message": "out of memory"}}))
    reply = Reply(is_close_look)
    assert reply.feed(answer[:at] + told + answer[at:], 0.0)
    with pytest.raises(BadReply, match="error_in_stream"):
        reply.tokens()
