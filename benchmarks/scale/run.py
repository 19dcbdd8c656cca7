"""Holds the store and the executors against their promises at size, and writes the page anew."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from importlib import import_module

import page
from arms import CommandFailed, tell
from record import Result, machine, save

from scale.page import RESULTS

PARTS = ("postgres", "copies", "driver", "ray_executor", "ten_million")
"""Each is a module of this folder with a function `measure(quick)`; imported when it is asked for, since a part may need
packages that another does without."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; may be given several times")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer rounds; stores nothing")
    asked = parser.parse_args()
    try:
        results = [one for name in asked.only or PARTS for one in _measure(name, asked.quick)]
    except CommandFailed as error:
        tell(str(error))
        return 2
    if not asked.quick:
        for one in results:
            save(one, RESULTS)
        page.main([])
    return 0 if all(one.holds for one in results) else 1


def _measure(name: str, quick: bool) -> list[Result]:
    state = machine()
    tell(f"{name} (load {state['load']})")
    measure: Callable[[bool], list[Result]] = import_module(f"scale.{name}").measure
    results = [replace(one, machine=state, date=date.today().isoformat()) for one in measure(quick)]
    for one in results:
        verdict = "holds " if one.holds else "MISSED"
        print(
            f"{verdict}  {one.promise.name}: {page.measured(one)}, promised {one.promise.shown()}", flush=True
        )
        if one.detail:
            print(f"        {one.detail}", flush=True)
    return results


if __name__ == "__main__":
    sys.exit(main())
