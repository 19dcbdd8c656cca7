"""Holds `assay load` against its promises, beside its peers, stores what was found and writes the page anew."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from functools import partial

import page
from arms import ASSAY, CommandFailed, elsewhere, tell
from record import Result, machine, save

from load import costs, exactness, rates, saturation
from load.page import RESULTS

PARTS: dict[str, Callable[[bool], list[Result]]] = {
    "rates": rates.measure,
    "exactness": exactness.measure,
    "sustained": saturation.sustained,
    "capacity": saturation.capacity,
    "start": costs.start,
    "memory": costs.memory,
}
BESIDE_PEERS = ("rates", "exactness")


def main() -> int:
    asked = _asked()
    try:
        # Once before anything is timed: the first use of a fresh checkout also writes its bytecode.
        elsewhere(ASSAY, "load", "--help")
        results = [one for name in asked.only or PARTS for one in _part(name, asked.quick, not asked.light)]
    except CommandFailed as error:
        tell(str(error))
        return 2
    return 0 if all(one.holds for one in results) else 1


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; may be given several times")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer and shorter runs, without the peers that take gigabytes; stores nothing",
    )
    parser.add_argument(
        "--light",
        action="store_true",
        help="without the peers that take gigabytes, whose stored results stay as they are",
    )
    return parser.parse_args()


def _part(name: str, quick: bool, with_heavy: bool) -> Sequence[Result]:
    """Stored as soon as it is measured: a later part that fails takes nothing with it."""
    state, started = machine(), time.perf_counter()
    tell(f"{name} (load {state['load']})")
    measure = partial(PARTS[name], with_heavy=with_heavy) if name in BESIDE_PEERS else PARTS[name]
    results = [replace(one, machine=state, date=date.today().isoformat()) for one in measure(quick)]
    tell(f"{name}: {time.perf_counter() - started:.0f} s")
    for one in results:
        _print(one)
    if not quick:
        for one in results:
            save(one, RESULTS)
        page.main([])
    return results


def _print(result: Result) -> None:
    verdict = "holds " if result.holds else "MISSED"
    beside = "".join(f"; {name} {peer.shown(result.unit)}" for name, peer in result.peers.items())
    name, promised = result.promise.name, result.promise.shown()
    print(f"{verdict}  {name}: {page.measured(result)}{beside}; promised {promised}", flush=True)
    if result.detail:
        print(f"        {result.detail}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
