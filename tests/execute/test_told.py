"""An error tells about the subject's code and not about ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.execute.carrying import trial
from tests.execute.conftest import Carry

import assay
from assay.execute.error_text import format_error
from assay.model import Isolation
from assay.model.redaction import Redaction

HARNESS = Path(assay.__file__).parent


@pytest.mark.parametrize("isolation", [Isolation.PROCESS, Isolation.INLINE])
def test_the_frames_of_the_harness_are_left_out(carry: Carry, isolation: Isolation) -> None:
    carried = carry(trial(deed="raise", measured=1, isolation=isolation))

    error = carried.executions[0].error or ""
    assert error.startswith("ValueError: boom\nTraceback")
    assert "subjects.py" in error
    assert str(HARNESS) not in error


def test_only_the_last_frames_are_kept() -> None:
    def deeper(level: int) -> None:
        if not level:
            json.loads("{")
        deeper(level - 1)

    with pytest.raises(ValueError) as caught:
        deeper(100)

    assert "json/decoder.py" in format_error(caught.value)
    assert len(format_error(caught.value).splitlines()) < 25


def test_half_a_secret_is_not_kept_where_a_long_error_is_cut() -> None:
    text = "x" * 3_990 + "hunter2-is-my-password" + "y" * 3_990
    with pytest.raises(ValueError) as caught:
        raise ValueError(text)

    kept = Redaction(["hunter2-is-my-password"]).redact_text(format_error(caught.value))
    assert "hunter2" not in kept
    assert "password" not in kept


def test_an_error_that_cannot_be_shown_is_reported_all_the_same() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert format_error(Mute()).startswith(("Mute: <Mute ", "Mute: Mute()"))


def test_a_cause_is_reported_too() -> None:
    try:
        try:
            json.loads("{")
        except ValueError as cause:
            raise KeyError("settings") from cause
    except KeyError as error:
        text = format_error(error)

    assert text.startswith("KeyError: 'settings'")
    assert "Expecting property name" in text
