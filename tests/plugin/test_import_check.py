"""A user's file that hangs or ends its process when it is imported is one message, not the end of the command."""

from __future__ import annotations

import sys

import pytest
from tests.command import Assay
from tests.wording import Wording

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="files are imported in a fork on Linux only")

FAULTS = {
    "hangs": ("while True: pass", "longer than 1 s"),
    "sleeps": ("import time; time.sleep(600)", "longer than 1 s"),
    "leaves": ("import os; os._exit(0)", "with code 0"),
    "leaves_with_5": ("import os; os._exit(5)", "with code 5"),
    "crashes": ("import os; os.kill(os.getpid(), 11)", "SIGSEGV"),
    "kills": ("import os; os.kill(0, 9)", "SIGKILL"),
    "floods": ("while True: print('x' * 10_000)", "10 MB"),
    "exits": ("import sys; sys.exit(3)", "sys.exit(3)"),
    "interrupts": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "cancels": ("import asyncio; raise asyncio.CancelledError", "CancelledError"),
}
SUITE = """
suite: s
agents: [{name: a, type: python, target: "leaves.py:f"}]
benchmarks: [{id: b, scorer: exact, cases: [{id: c, input: x, expected: x}]}]
"""


def test_each_file_that_cannot_be_imported_is_named_and_the_others_are_listed(assay: Assay) -> None:
    for name, (code, _) in FAULTS.items():
        assay.write(f"{name}.py", code)
    assay.write("works.py", "class Mine:\n    def answer(self, request): ...\n")
    assay.write("works_too.py", "from assay import register_experiment\n\n"
                "@register_experiment('listed')\nclass Listed:\n    def execute_once(self, context): ...\n")  # fmt: skip
    assay.write("assay.toml", '[assay]\nload = ["*.py"]\n')

    done = assay("list", "experiments", ASSAY_IMPORT_SECONDS="1")

    assert done.code == 0, done.err
    assert "listed" in done.out
    for name, (_, expected) in FAULTS.items():
        (line,) = [line for line in done.err.splitlines() if f"/{name}.py'" in line]
        assert expected in line


@pytest.mark.parametrize(
    "command", ["run leaves.py", "run suite.yaml", "run suite.yaml --dry-run", "list --load leaves.py"]
)
def test_a_file_that_ends_its_process_is_refused_by_its_name(
    assay: Assay, command: str, wording: Wording
) -> None:
    assay.write("leaves.py", "import os\nos._exit(0)\n")
    assay.write("suite.yaml", SUITE)

    refusal = assay(*command.split()).refusal
    assert "leaves.py' " in refusal
    wording(refusal)


def test_the_limit_of_an_import_must_be_a_number(assay: Assay) -> None:
    assay.write("works.py", "")

    assert "ASSAY_IMPORT_SECONDS" in assay("run", "works.py", ASSAY_IMPORT_SECONDS="soon").refusal
