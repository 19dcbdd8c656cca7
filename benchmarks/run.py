"""Measures Assay against its promises, beside its peers, and writes the page that shows them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date

import page
import questions
import reports
import startup
import throughput
import timer
from arms import ASSAY, CommandFailed, elsewhere, tell
from record import Result, machine, save

import agents

PARTS: dict[str, Callable[[bool], list[Result]]] = {
    "throughput": throughput.measure,
    "agents": agents.measure,
    "timer": timer.measure,
    "startup": startup.measure,
    "reports": reports.measure,
    "questions": questions.measure,
}


def main() -> int:
    asked = _asked()
    try:
        # Once before anything is timed: the first use of a fresh checkout also writes its bytecode.
        elsewhere(ASSAY, "run", "noop", "--json", "-q")
        results = [one for name in asked.only or PARTS for one in _part(name, asked.quick)]
    except CommandFailed as error:
        tell(str(error))
        return 2
    if not asked.quick:
        for one in results:
            save(one)
        page.main([])
    return 0 if all(one.holds for one in results) else 1


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; may be given several times")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller runs; stores nothing")
    return parser.parse_args()


def _part(name: str, quick: bool) -> Sequence[Result]:
    state = machine()
    tell(f"{name} (load {state['load']})")
    results = [replace(one, machine=state, date=date.today().isoformat()) for one in PARTS[name](quick)]
    for one in results:
        verdict = "holds " if one.holds else "MISSED"
        print(
            f"{verdict}  {one.promise.name}: {page.measured(one)}, promised {one.promise.shown()}", flush=True
        )
    return results


if __name__ == "__main__":
    sys.exit(main())
