"""The golden file of messages and the fixture that compares with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import wording as golden
from tests.wording import Wording


def test_a_changed_sentence_fails_and_names_the_command(tmp_path: Path) -> None:
    wording = Wording("test_x", ["The gate passes."], tmp_path)
    with pytest.raises(AssertionError, match="make messages"):
        wording("The gate fails.")


def test_only_the_lines_asked_for_are_compared_without_folder_and_digits(tmp_path: Path) -> None:
    wording = Wording("test_x", ["<folder>/a.yaml:# # keys"], tmp_path)
    wording(f"noise 12\n{tmp_path}/a.yaml:3 1,200 keys  \n", near="a.yaml", numbers=False)
    with pytest.raises(AssertionError, match="no line contains"):
        wording("noise", near="a.yaml")


def test_what_is_written_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "MESSAGES", tmp_path / "messages.txt")
    messages = {"b::test[x y]": ["one\n\n  two", "## three"], "a::test": ["four"]}
    golden.write_messages(messages)
    assert golden.read_messages() == messages
    assert list(golden.read_messages()) == ["a::test", "b::test[x y]"]


def test_a_sentence_is_compared_by_its_test(wording: Wording) -> None:
    wording("This sentence stands in tests/messages.txt.")
