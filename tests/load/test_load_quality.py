"""A suite as the data set: answers are scored while the server is loaded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.command import AssayInline
from tests.load.faulty import DONE, FINISH, JSON, Guest, always, delta, faulty, streamed, with_length
from tests.suites.project import numbers, suite
from tests.wording import Wording

from assay.load import answer_text as keeping
from assay.load.answer_text import LONGEST_JUDGED, Reservoir


def asked(guest: Guest) -> str:
    content: str = json.loads(guest.request.partition(b"\r\n\r\n")[2])["messages"][-1]["content"]
    return content


def mostly_right(guest: Guest) -> None:
    """What is asked comes back, cut in two; asked for 3 the server says 7."""
    text = asked(guest).strip()
    guest.say(streamed([delta(content="7" if text == "3" else text), delta(content=" "), FINISH, DONE]))


def test_answers_are_scored_while_the_server_is_loaded(assay_inline: AssayInline) -> None:
    file = assay_inline.write("s.yaml", suite(numbers(4), benchmark={"scorer": "exact"}))
    with faulty(mostly_right) as server:
        done = assay_inline(
            "load", server.url, "--dataset", file, "--requests", "40", "--concurrency", "1,4", "--json"
        )
    loads = done.json["loads"]
    for one in loads:
        assert one["quality"]["score"] == pytest.approx(0.75)
        assert one["quality"]["scored"] == 40
        low, high = one["quality"]["interval"]
        assert low <= 0.75 <= high
    assert "score" in assay_inline("show", done.json["run"]).out


def test_answers_in_one_piece_are_scored_too(assay_inline: AssayInline) -> None:
    def talk(guest: Guest) -> None:
        guest.say(
            with_length(json.dumps({"choices": [{"message": {"content": asked(guest)}}]}).encode(), JSON)
        )

    file = assay_inline.write("s.yaml", suite(numbers(3), benchmark={"scorer": "exact"}))
    with faulty(talk) as server:
        done = assay_inline("load", server.url, "--dataset", file, "--requests", "9", "--no-stream", "--json")
    assert done.json["quality"] == {"score": 1.0, "interval": [1.0, 1.0], "scored": 9, "unscored": 0}


def test_a_suite_that_is_wrong_is_refused_with_its_line(assay_inline: AssayInline) -> None:
    file = assay_inline.write("s.yaml", "suite: s\nbenchmarks: []\n")
    with faulty(mostly_right) as server:
        assert "s.yaml" in assay_inline("load", server.url, "--dataset", file).refusal
        assert server.requests == []


def long_of(size: int, end: str, piece: int = 4000) -> bytes:
    """A stream that says so many x and then the end."""
    text = "x" * size + end
    return streamed(
        [*(delta(content=text[at : at + piece]) for at in range(0, len(text), piece)), FINISH, DONE]
    )


def judged(assay: AssayInline, answer: bytes, expected: str, *more: str) -> dict[str, Any]:
    cases = [{"id": "a", "input": "Write much.", "expected": expected}]
    file = assay.write("s.yaml", suite(cases, benchmark={"scorer": "exact"}))
    with faulty(always(answer)) as server:
        done = assay("load", server.url, "--dataset", file, "--requests", "2", "--json", *more)
    found: dict[str, Any] = done.json
    return found


@pytest.mark.parametrize("size", [300_000, LONGEST_JUDGED - 3])
def test_a_long_answer_is_judged_whole(assay_inline: AssayInline, size: int) -> None:
    """Right only if the beginning is there as well as the end."""
    found = judged(assay_inline, long_of(size, "end"), "x" * size + "end")
    assert found["quality"] == {"score": 1.0, "interval": None, "scored": 2, "unscored": 0}


def test_an_answer_that_is_too_long_is_not_scored_rather_than_judged_by_a_part(
    assay_inline: AssayInline,
    wording: Wording,
) -> None:
    found = judged(assay_inline, long_of(LONGEST_JUDGED, "end"), "end")
    assert found["quality"] is None
    (told,) = (warning for warning in found["warnings"] if "--max-tokens" in warning)
    assert told.startswith("2 answers")
    wording(told)


@pytest.mark.parametrize(("size", "scored"), [(400_000, 2), (LONGEST_JUDGED + 1, 0)])
def test_the_same_holds_for_answers_in_one_piece(assay_inline: AssayInline, size: int, scored: int) -> None:
    body = json.dumps({"choices": [{"message": {"content": "x" * size}}]}).encode()
    found = judged(assay_inline, with_length(body, JSON), "x" * size, "--no-stream")
    assert (found["quality"] or {"scored": 0})["scored"] == scored


def test_of_long_answers_fewer_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MOST_CHARACTERS", 1000)
    kept = Reservoir[int]()
    for number in range(2_000):
        kept.add(number, 100)
        assert len(list(kept)) * 100 <= 1000
    assert 5 <= len(set(kept)) <= 10
    assert max(kept) > 200


def test_of_too_many_answers_an_even_choice_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MOST_ANSWERS", 100)
    kept = Reservoir[int]()
    for number in range(10_000):
        kept.add(number, 1)
    numbers_kept = sorted(kept)
    assert len(set(numbers_kept)) == 100
    # The median of 100 uniform draws is within five standard errors of the middle.
    assert abs(numbers_kept[50] - 5000) < 5 * 10_000 * 0.5 / 10
