"""Agents that misbehave in the middle of a run: each is recorded as what it is, and the others are answered."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.command import AssayInline
from tests.execute.carrying import eventually
from tests.suites.project import Stored, suite
from tests.wording import Wording

from assay.model import Status

PROGRAM = """
import json, os, signal, sys, time
FAULTS = {
    "hangs": lambda: time.sleep(600),
    "ignores": lambda: (signal.signal(signal.SIGTERM, signal.SIG_IGN), time.sleep(600)),
    "crashes": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "garbage": lambda: print("what?", flush=True),
    "floods": lambda: [sys.stderr.write("e" * 50_000) for _ in range(200)] and None,
    "huge": lambda: print('"' + "x" * 50_000_000 + '"', flush=True),
    "closes": lambda: (os.write(1, b'{"id'), os._exit(0)),
    "binary": lambda: os.write(1, b'{"id": "\\xff\\xfe"}\\n'),
}
LIES = {
    "negative": {"usage": {"input_tokens": -5}},
    "huge-usage": {"usage": {"output_tokens": 10**30}},
    "fraction": {"usage": {"input_tokens": 1.5}},
    "truth": {"usage": {"input_tokens": True}},
    "refund": {"usd": -1},
    "fortune": {"usd": 1e300},
    "endless": {"durations": {"load": 1e300}},
    "another": {"id": "nobody"},
}
for line in sys.stdin:
    asked = json.loads(line)
    what = asked["input"]
    if what == "late":
        time.sleep(10)
    if what in FAULTS:
        FAULTS[what]()
    answers = [json.dumps({"id": asked["id"], "output": what, **LIES.get(what, {})})]
    if what == "twice":
        answers.append(json.dumps({"id": asked["id"], "output": "again"}))
    # In one write: a second answer that came late would be held against whatever this process is asked next.
    sys.stdout.write("".join(answer + "\\n" for answer in answers))
    sys.stdout.flush()
"""
EXPECTED = {
    **dict.fromkeys(("floods", "twice"), (Status.OK, "")),
    **dict.fromkeys(("hangs", "ignores", "late"), (Status.TIMEOUT, "6 s")),
    "crashes": (Status.FAILED, "SIGSEGV"),
    "closes": (Status.FAILED, ""),
    "garbage": (Status.INVALID_OUTPUT, "JSON"),
    "huge": (Status.INVALID_OUTPUT, "33,554,432"),
    "binary": (Status.INVALID_OUTPUT, "UTF-8"),
    "another": (Status.INVALID_OUTPUT, "nobody"),
    "negative": (Status.INVALID_OUTPUT, "-5"),
    "huge-usage": (Status.INVALID_OUTPUT, "output_tokens"),
    "fraction": (Status.INVALID_OUTPUT, "1.5"),
    "truth": (Status.INVALID_OUTPUT, "True"),
    "refund": (Status.INVALID_OUTPUT, "-1.0"),
    "fortune": (Status.INVALID_OUTPUT, "1e+300"),
    "endless": (Status.INVALID_OUTPUT, "'load'"),
}


def cases() -> list[dict[str, Any]]:
    faults = [{"id": name, "input": name, "expected": name} for name in EXPECTED]
    fine = [{"id": f"after-{name}", "input": "fine", "expected": "fine"} for name in EXPECTED]
    return [case for pair in zip(faults, fine, strict=True) for case in pair]


def _alive(mark: str) -> list[str]:
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            commands.append((process / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return [command for command in commands if mark in command]


@pytest.mark.parametrize("concurrency", ["1", "4"])
def test_every_fault_is_recorded_as_what_it_is_and_the_run_goes_on(
    assay_inline: AssayInline, wording: Wording, concurrency: str
) -> None:
    program = assay_inline.write("misbehaving.py", PROGRAM)
    agent = {"name": "a", "type": "command", "command": [sys.executable, "-S", "-E", str(program)]}
    assay_inline.write("s.yaml", suite(cases(), [agent], benchmark={"limits": {"seconds": 6}}))
    started = time.monotonic()
    assert assay_inline("run", "s.yaml", "-q", "--concurrency", concurrency).code == 0
    assert time.monotonic() - started < 300
    stored = Stored(assay_inline.folder)
    found = {one.case: one for one in stored.measured}
    for name, (status, problem) in EXPECTED.items():
        assert (name, found[name].status) == (name, status)
        assert problem in (found[name].error or "")
        assert (found[f"after-{name}"].status, found[f"after-{name}"].output) == (Status.OK, "fine")
    assert len(found["floods"].log or "") < 100_000
    # A second answer to one request.
    notes = {one.log for one in stored.measured if (one.log or "").startswith("[1 ")}
    assert len(notes) == 1
    wording(*notes)
    wording(
        "\n".join(f"{name}: {found[name].error}" for name in EXPECTED if found[name].error), numbers=False
    )
    assert eventually(lambda: _alive(str(program)) == [])
