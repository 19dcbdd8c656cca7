"""Compare wording in one place: `tests/messages.txt` holds what users read, and `make messages` writes it again.

Tests assert exit codes, codes of doubts, verdicts, names and numbers. Where the sentence matters as well, they hand it to the
fixture `wording`, so that better English changes one file and no test:

    def test_a_key_that_is_given_twice_is_refused(assay, wording):
        refusal = assay("validate", "spec.yaml").refusal
        assert "spec.yaml:3: seed:" in refusal
        wording(refusal)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

MESSAGES = Path(__file__).parent / "messages.txt"
WRITE = "--write-messages"
_HEADING = "## "
_DIVIDER = "  --"
_INDENT = "    "


class Wording:
    """The texts of one test, compared with or written to the golden file in the order in which the test hands them over."""

    def __init__(self, test: str, known: list[str] | None, folder: Path) -> None:
        self._test = test
        self._known = known
        self._folder = folder
        self.texts: list[str] = []

    def __call__(self, text: object, *, near: str = "", numbers: bool = True) -> None:
        """Compare `text` with the golden file: only its lines that contain `near`, and without digits if `numbers` is false."""
        shown = self._normalize(str(text), near, numbers)
        assert shown, f"no line contains {near!r}: {text}"
        self.texts.append(shown)
        if self._known is None:
            return
        at = len(self.texts) - 1
        expected = self._known[at] if at < len(self._known) else ""
        assert shown == expected, f"wording changed; if that is intended, run `make messages` ({self._test})"

    def _normalize(self, text: str, near: str, numbers: bool) -> str:
        for folder in {str(self._folder.resolve()), str(self._folder)}:
            text = text.replace(folder, "<folder>")
        lines = [line.rstrip() for line in text.splitlines() if near in line]
        shown = "\n".join(lines).strip("\n")
        return shown if numbers else re.sub(r"\d[\d,.]*\d|\d", "#", shown)


def read_messages() -> dict[str, list[str]]:
    """The golden file: the texts of each test."""
    messages: dict[str, list[str]] = {}
    texts: list[str] = []
    for line in MESSAGES.read_text(encoding="utf-8").splitlines() if MESSAGES.exists() else []:
        if line.startswith(_HEADING):
            texts = messages.setdefault(line.removeprefix(_HEADING), [""])
        elif line == _DIVIDER:
            texts.append("")
        elif texts:
            texts[-1] += line.removeprefix(_INDENT) + "\n"
    return {test: [text.strip("\n") for text in texts] for test, texts in messages.items()}


def write_messages(messages: Mapping[str, list[str]]) -> None:
    """Write the golden file, sorted by test so that a change of wording is all that a diff shows."""
    blocks = []
    for test, texts in sorted(messages.items()):
        shown = ["\n".join((_INDENT + line).rstrip() for line in text.split("\n")) for text in texts]
        blocks.append(f"{_HEADING}{test}\n" + f"\n{_DIVIDER}\n".join(shown) + "\n")
    MESSAGES.write_text("\n".join(blocks), encoding="utf-8")


class MessageWriter:
    """Collects the texts of all tests and writes the golden file when the tests end.

    Tests may run in several processes: each leaves its texts with the report of the test, and the process that prints the
    reports gathers them.
    """

    def __init__(self, is_partial: bool) -> None:
        self._is_partial = is_partial
        self._gathered: dict[str, list[str]] = {}
        self._without_texts: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self._without_texts.add(report.nodeid)
        for name, value in report.user_properties:
            if name == "wording" and report.when == "teardown" and report.passed:
                self._gathered[report.nodeid] = json.loads(str(value))

    def pytest_sessionfinish(self) -> None:
        """Entries of tests that did not run stay: those of other files, and of tests that were skipped or failed."""
        if self._gathered:
            before = read_messages()
            kept = (
                before
                if self._is_partial
                else {test: before[test] for test in self._without_texts & set(before)}
            )
            write_messages(kept | self._gathered)


def select_tests_with_wording(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The tests that compare wording: all that have to run to write the golden file."""
    return [item for item in items if "wording" in getattr(item, "fixturenames", ())]
