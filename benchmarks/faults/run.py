"""Runs the fault campaign, stores what each part found and writes docs/reliability.md anew.

Exit code 1 when anything is wrong. The same seed and size try the same faults; `--match` tries those of one name again and
stores nothing.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from faults import page
from faults.campaign import Part, Size, Tally, run_part, save

PARTS = {
    "kills": "faults.kills",
    "signals": "faults.signals",
    "owners": "faults.owners",
    "agents": "faults.agents",
    "servers": "faults.servers",
    "files": "faults.files",
    "surroundings": "faults.surroundings",
    "secrets": "faults.leaks",
    "escapes": "faults.escapes",
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", type=Size, choices=list(Size), default=Size.FULL)
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; may be given several times")
    parser.add_argument(
        "--match", default="", help="only faults whose name contains this text; stores nothing"
    )
    parser.add_argument("--no-store", action="store_true", help="print, but keep no results")
    asked = parser.parse_args(arguments)
    tallies = []
    for name in asked.only or PARTS:
        tally = run_part(load_part(name), asked.seed, asked.size, asked.match, _tell)
        tallies.append(tally)
        if not asked.match and not asked.no_store:
            save(tally)
            page.main([])
    _print(tallies)
    return 1 if any(tally.wrong for tally in tallies) else 0


def load_part(name: str) -> Part:
    part: Part = importlib.import_module(PARTS[name]).PART
    return part


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _print(tallies: Sequence[Tally]) -> None:
    print(f"{'part':<13} {'tried':>7} {'right':>7} {'wrong':>7} {'seconds':>8}")
    for tally in tallies:
        wrong = tally.tried - tally.right
        print(f"{tally.part:<13} {tally.tried:>7} {tally.right:>7} {wrong:>7} {tally.seconds:>8.0f}")


if __name__ == "__main__":
    sys.exit(main())
