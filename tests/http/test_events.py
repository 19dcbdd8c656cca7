from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.http.parsing import parse_pieces

from assay.http.events import NdjsonParser, Piece, SseParser

LINE = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)
EVENT = st.tuples(
    st.sampled_from(["message", "delta", "größe"]), st.lists(LINE, min_size=1, max_size=3).map("\n".join)
)


def cut(data: bytes, places: list[int]) -> list[Piece]:
    """The data in pieces, cut at those places; the first is read at second 0, the next at 1, and so on."""
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    parts = [data[start:end] for start, end in pairwise(edges)]
    return [Piece(part, float(second)) for second, part in enumerate(parts)]


@given(
    st.lists(EVENT, max_size=6),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 10_000), max_size=12),
)
def test_events_are_the_same_however_the_stream_is_cut(
    events: list[tuple[str, str]], newline: str, places: list[int]
) -> None:
    text = ""
    for name, data in events:
        lines = [
            f"event: {name}",
            ": a comment",
            *(f"data: {line}" for line in data.split("\n")),
            "id: 7",
            "",
        ]
        text += newline.join(lines) + newline

    found = parse_pieces(cut(text.encode(), places), SseParser())

    assert [(event.event, event.data) for event in found] == events


@given(
    st.lists(LINE.filter(str.strip), max_size=8), st.lists(st.integers(0, 10_000), max_size=12), st.booleans()
)
def test_lines_are_the_same_however_the_stream_is_cut(
    lines: list[str], places: list[int], is_ended: bool
) -> None:
    text = "\n".join(lines) + ("\n" if is_ended and lines else "")

    assert [line.text for line in parse_pieces(cut(text.encode(), places), NdjsonParser())] == lines


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("data: a\n\ndata: b\n\n", ["a", "b"]),
        ("data:a\n\n", ["a"]),
        ("data:  a\n\n", [" a"]),
        ("data\n\n", [""]),
        ("data: a\ndata: b\n\n", ["a\nb"]),
        (": only a comment\n\n", []),
        ("event: ping\n\ndata: a\n\n", ["a"]),
        ("retry: 10\nunknown: x\ndata: a\n\n", ["a"]),
        ("data: a\n\ndata: no blank line\n", ["a", "no blank line"]),
        ("data: a\n\ndata: no newline", ["a", "no newline"]),
        ("\ufeffdata: a\n\n", ["a"]),
        ("\n\n\n", []),
        ("", []),
    ],
)
def test_the_odd_forms_of_events_are_understood(text: str, data: list[str]) -> None:
    assert [event.data for event in parse_pieces([Piece(text.encode(), 1.0)], SseParser())] == data


def test_an_event_without_data_does_not_lend_its_name_to_the_next() -> None:
    found = parse_pieces([Piece(b"event: ping\n\ndata: a\n\n", 1.0)], SseParser())

    assert found[0].event == "message"


def test_an_event_has_the_time_when_its_data_began_to_arrive() -> None:
    found = parse_pieces(
        [Piece(b"data: a\n\nda", 1.0), Piece(b"ta: b", 2.0), Piece(b"\n\ndata: c\n\n", 3.0)], SseParser()
    )

    assert [(event.data, event.at) for event in found] == [("a", 1.0), ("b", 1.0), ("c", 3.0)]
