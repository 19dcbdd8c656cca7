"""Programs that try to cheat the `code` scorer or to get out of its sandbox, and right programs beside them."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.scorers.sandbox_escapes import CALLS, CLAIMS, ESCAPES, LEAKS, TRACES, Escape, Outside

from faults.campaign import Fault, Outcome, Part, Size

_RIGHT = Escape("a right program", "def add(a, b):\n    return a + b\n")
_RIGHT_CALLED = Escape("a right program, called", "def add(a, b):\n    return a + b\n", CALLS)


@contextmanager
def prepare(seed: int, size: Size) -> Iterator[Sequence[Fault]]:
    chance = random.Random(f"{seed} escapes")
    every = [escape for _ in range(size.choose(1, 1, 3)) for escape in ESCAPES]
    if size is Size.SMALLEST:
        every = [chance.choice(group) for group in (CLAIMS, LEAKS, TRACES)]
    chance.shuffle(every)
    with Outside() as outside:
        right = [
            Fault(f"{n} {one.name}", partial(_check_right, outside, one))
            for n, one in enumerate((_RIGHT, _RIGHT_CALLED))
        ]
        yield [
            *right,
            *(Fault(f"{n} {one.name}", partial(_check, outside, one)) for n, one in enumerate(every, 2)),
        ]


def _check(outside: Outside, escape: Escape, folder: Path) -> Outcome:
    judgement, traces = outside.attempt(escape)
    problems = [f"left outside: {trace}" for trace in traces]
    if judgement.value:
        problems.append(f"a wrong program got {judgement.value}")
    return Outcome(1, tuple((escape.name, problem) for problem in problems), _counts())


def _check_right(outside: Outside, program: Escape, folder: Path) -> Outcome:
    """Without this, a scorer that refuses everything would look safe."""
    judgement, _ = outside.attempt(program)
    wrongs = () if judgement.value == 1 else ((program.name, f"got {judgement.value}: {judgement.reason}"),)
    return Outcome(1, wrongs, _counts())


def _counts() -> dict[str, int]:
    return {"in bubblewrap": 1} if shutil.which("bwrap") else {"without a sandbox": 1}


PART = Part(
    "escapes",
    "A wrong program gets no score from the `code` scorer and leaves no trace outside; a right one gets 1.",
    prepare,
    at_a_time=1,
)
