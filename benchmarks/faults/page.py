"""Writes docs/reliability.md from the stored results; with --check, says whether it is out of date and exits with 1."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from faults.campaign import RESULTS, Size, Tally, stored

PAGE = Path(__file__).parent.parent.parent / "docs" / "reliability.md"
ORDER = ("kills", "signals", "owners", "agents", "servers", "files", "surroundings", "secrets", "escapes")
OPENING = """\
<!-- Written by benchmarks/faults/page.py from benchmarks/results/faults (make faults). -->

# Reliability

The fault campaign deliberately breaks what Assay depends on: processes, agents, servers, files. For every fault the right
outcome is known beforehand. A fault counts as right only if all of its checks pass; a check that cannot be completed counts as
wrong. [Security](security.md) describes what Assay trusts and what it confines.
"""
METHOD = """\
## What is tried

- **kills**: `kill -9` of the runner, its process group, its whole process tree or a worker, at a random moment of start-up,
  work, a write to the store, or a resume, on SQLite and PostgreSQL. The run is then resumed until it is done and compared with
  the plan: *lost* are planned executions that are missing, *duplicated* are executions that are stored twice or that were finished
  and were done again. On PostgreSQL, all connections are also ended during a run. Agents write each call to a ledger
  of their own, which Assay cannot influence.
- **signals**: INT, TERM, HUP (once and twice) and STOP with CONT. Checked: exit code, teardown, finished work, processes left.
- **owners**: two `--resume` of one run at the same moment. Exactly one may continue.
- **agents**: agents that misbehave in Python (plain, async, streaming), as a program and behind HTTP. Each must get the status
  that fits, and a well-behaved agent in the same run must stay right.
- **servers**: servers that break the protocol, over http and https, through `run`, `load`, `record` and `replay`. An answer is right or
  counted as a failure, never a wrong answer that counts as right.
- **files**: mutants of every kind of file that Assay reads, through the commands that read them. Allowed are success and one
  message with exit code 2 (or 1 where a command has found something); a traceback, an internal error (exit code 3) or more
  than 5 seconds is wrong.
- **surroundings**: closed streams, a full disk, other encodings, a working folder that is gone, tight limits and odd settings.
- **secrets**: planted keys that agents and servers repeat in every field, searched for in the database, reports, cassettes
  and on the console, as they are and in usual encodings.
- **escapes**: solutions for the `code` scorer that try to cheat or to leave the sandbox.
"""
REPRODUCE = """\
## Reproduce

    make faults                # the full campaign: half an hour or more; exits with 1 if anything is wrong
    make faults QUICK=1        # the quick one: under five minutes on two idle cores
    make faults SEED=7         # other moments, other mutants
    PYTHONPATH=benchmarks .venv/bin/python -m faults.run --size quick --only kills    # one part

The results are in `benchmarks/results/faults`, one file per part and size. This page is generated from those files alone.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args(arguments)
    text = page(stored(asked.results))
    if not asked.check:
        asked.page.write_text(text, encoding="utf-8")
        return 0
    is_current = asked.page.is_file() and asked.page.read_text(encoding="utf-8") == text
    if not is_current:
        print(f"{asked.page.name} is out of date: PYTHONPATH=benchmarks python -m faults.page")
    return 0 if is_current else 1


def page(tallies: Sequence[Tally]) -> str:
    sections = [OPENING]
    for size in (Size.FULL, Size.QUICK):
        of_size = sorted((one for one in tallies if one.size is size), key=lambda one: ORDER.index(one.part))
        if of_size:
            sections += [
                f"## The {size} campaign\n",
                _verdict(of_size),
                _table(of_size),
                *_wrongs(of_size),
                _machines(of_size),
            ]
    return "\n".join([*sections, METHOD, REPRODUCE])


def _verdict(tallies: Sequence[Tally]) -> str:
    tried, right = sum(one.tried for one in tallies), sum(one.right for one in tallies)
    missing = [name for name in ORDER if name not in {one.part for one in tallies}]
    gaps = f" Not run: {', '.join(missing)}." if missing else ""
    found = f"{tried:,} faults tried, {right:,} right, {tried - right:,} wrong"
    planned, lost, doubled = (
        sum(one.counts.get(what, 0) for one in tallies) for what in ("executions planned", "lost", "doubled")
    )
    kept = f" Of {planned:,} executions in runs that were killed or resumed by several processes at once: {lost} lost, {doubled} duplicated."
    return f"**{found}.**{kept if planned else ''}{gaps}\n"


def _table(tallies: Sequence[Tally]) -> str:
    rows = [
        "| part | tried | right | wrong | counted | must hold |",
        "|---|---|---|---|---|---|",
        *map(_row, tallies),
    ]
    return "\n".join(rows) + "\n"


def _row(tally: Tally) -> str:
    wrong = tally.tried - tally.right
    counted = ", ".join(f"{count:,} {what}" for what, count in tally.counts.items()) or "–"
    shown = f"**{wrong:,}**" if wrong else "0"
    return f"| {tally.part} | {tally.tried:,} | {tally.right:,} | {shown} | {counted} | {tally.claim} |"


def _wrongs(tallies: Sequence[Tally]) -> Iterator[str]:
    wrongs = [wrong for tally in tallies for wrong in tally.wrong]
    if wrongs:
        lines = ["### Wrong\n"]
        for wrong in wrongs:
            lines.append(f"- {_inline(wrong.kind)}: {_inline(wrong.problem)}\n\n      {wrong.reproduce}\n")
        yield "\n".join(lines)


def _inline(text: str) -> str:
    return " ".join(text.split())[:400].replace("<", "&lt;").replace("|", "\\|")


def _machines(tallies: Sequence[Tally]) -> str:
    """Where it ran, and how busy the machine was: minutes on one that does other work say little."""
    minutes = sum(tally.seconds for tally in tallies) / 60
    loads = sorted(tally.machine["load"] for tally in tallies)
    states = dict.fromkeys(
        (t.machine["class"], t.machine["python"], t.date, f"seed {t.seed}") for t in tallies
    )
    places = "; ".join(", ".join(state) for state in states)
    return f"{places}. It took {minutes:.1f} minutes, with a load of {loads[0]:.1f} to {loads[-1]:.1f} when parts began.\n"


if __name__ == "__main__":
    sys.exit(main())
