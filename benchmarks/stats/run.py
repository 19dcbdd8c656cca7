"""Holds the statistics against their promises, prints the table, stores what was found and writes the page anew."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import date
from functools import partial
from typing import TypeVar

import page
from arms import tell
from record import Bound, Figure, Promise, Result, machine, save
from rich.console import Console
from rich.table import Table

from assay.stats.verdicts import wilson
from stats import speed
from stats.page import RESULTS
from stats.simulate import (
    SCORE_SKILLS,
    SEQUENCE_NOISES,
    Counts,
    across_coverage,
    cells,
    counted,
    counted_cell,
    one_side_coverage,
    peeked,
    power_cells,
    stopped,
    stopped_scores,
    tail_coverage,
)

T = TypeVar("T")


def main() -> int:
    asked = _asked()
    results = [one for name in asked.only or PARTS for one in _part(name, asked.quick)]
    _print(results)
    if not asked.quick:
        for one in results:
            save(one, RESULTS)
        page.main([])
    return 0 if all(one.holds for one in results) else 1


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; may be given several times")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a tenth of the repetitions, whose rates mean little; stores nothing",
    )
    return parser.parse_args()


def _part(name: str, quick: bool) -> list[Result]:
    state, started = machine(), time.perf_counter()
    tell(f"{name} …")
    results = [replace(one, machine=state, date=date.today().isoformat()) for one in PARTS[name](quick)]
    tell(f"{name}: {time.perf_counter() - started:.0f} s")
    return results


def _print(results: Sequence[Result]) -> None:
    table = Table("Claim", "Promised", "Measured", "Verdict", header_style="bold")
    for one in results:
        verdict = "[green]holds[/green]" if one.holds else "[red]MISSED[/red]"
        table.add_row(one.promise.claim, one.promise.shown(), page.measured(one), verdict)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def comparisons(quick: bool) -> list[Result]:
    same_times, changed_times = (400, 200) if quick else (4000, 2000)
    every = list(cells())
    same = _in_two_processes(partial(counted_cell, repetitions=same_times, is_changed=False), every)
    changed = _in_two_processes(partial(counted_cell, repetitions=changed_times, is_changed=True), every)
    wrong = {name: counts.significant / counts.n for name, counts in same.items()}
    claimed = {name: counts.claimed / counts.n for name, counts in same.items()}
    covered = {name: counts.covered / counts.n for name, counts in changed.items()}
    kinds = f"{len(every)} cells: times and scores, paired and not, 5 to 200 units, six kinds of noise"
    return [
        _pooled("false-positives", "p < 0.05 without a change, pooled", "at most", 0.055, same, wrong, kinds),
        _pooled("false-positives-least", "The same", "at least", 0.04, same, wrong),
        _extreme("false-positives-worst", "The same in the worst cell", "at most", 0.065, same, wrong),
        _pooled("false-claims", "Better or worse without a change, pooled", "at most", 0.055, same, claimed),
        _pooled("coverage", "Intervals that hold a change of 10 % or 10 points, pooled", "at least", 0.945,
                changed, covered),
        _pooled("coverage-most", "The same", "at most", 0.965, changed, covered),
        _extreme("coverage-worst", "The same in the worst cell", "at least", 0.93, changed, covered),
    ]  # fmt: skip


def power(quick: bool) -> list[Result]:
    promised = {
        "unpaired": ("10 % slower found among stragglers, 20 a side", 0.72),
        "paired": ("10 % slower found among stragglers, 50 pairs", 0.70),
        "accuracy": ("10 points more found, 200 cases of 3 repetitions", 0.97),
    }
    found = []
    for name, cell in power_cells().items():
        claim, least = promised[name]
        counts = counted(cell, 400 if quick else 4000, is_changed=True)
        share = counts.significant / counts.n
        found.append(_rate(f"power-{name}", claim, "at least", least, share, counts.n))
    return found


def estimates(quick: bool) -> list[Result]:
    repetitions, drawn = (200, 100) if quick else (4000, 1000)
    one_side, tails, across = one_side_coverage(repetitions), tail_coverage(drawn), across_coverage(drawn)
    return [
        _worst("coverage-accuracy", "Interval of one accuracy, worst cell", 0.93, one_side, repetitions),
        _worst("coverage-tails", "Interval of P95 and P99, worst cell", 0.93, tails, drawn),
        _worst(
            "coverage-across",
            "Interval of the interquartile mean over benchmarks, worst cell",
            0.93,
            across,
            drawn,
        ),
    ]


def stopping(quick: bool) -> list[Result]:
    repetitions = 200 if quick else 2000
    same = _in_two_processes(partial(stopped, repetitions=repetitions, ratio=1.0), list(SEQUENCE_NOISES))
    wrong = {name: one.differing / one.n for name, one in same.items()}
    worst = max(wrong, key=lambda name: wrong[name])
    changed = stopped("spiky", repetitions, 1.1)
    equal = _in_two_processes(partial(stopped_scores, repetitions=repetitions, more=0.0), list(SCORE_SKILLS))
    unequal = stopped_scores("half right", repetitions, 0.2)
    apart = {name: one.differing / one.n for name, one in equal.items()}
    misled = max(apart, key=lambda name: apart[name])
    alarm = (
        f"Looking at an ordinary interval after every pair instead: {peeked(repetitions):.1%} false alarms."
    )
    return [
        _rate("stopping-false-alarms", f"Looked at after every pair, no change, worst noise ({worst})",
              "at most", 0.05, wrong[worst], repetitions, alarm, wrong),
        _rate("stopping-found", "Looked at after every pair, 10 % slower with stragglers: found",
              "at least", 0.97, changed.differing / changed.n, changed.n),
        _plain("stopping-pairs", "The same: pairs until it is decided, mean", "at most", 18, changed.pairs),
        _rate("stopping-scores-false-alarms", f"Scores looked at after every case, no change, worst ({misled})",
              "at most", 0.05, apart[misled], repetitions, values=apart),
        _rate("stopping-scores-found", "Scores looked at after every case, 20 points more: found within 400 cases",
              "at least", 0.95, unequal.differing / unequal.n, unequal.n,
              f"Decided after {unequal.pairs:.0f} cases on average."),
    ]  # fmt: skip


def families(quick: bool) -> list[Result]:
    repetitions = 200 if quick else 2000
    return [
        _rate("gate", "A gate of 20 metrics fails without a change", "below", 0.05,
              speed.gates_failed(repetitions), repetitions),
        _plain("compare-seconds", "100 benchmarks × 5 metrics × 30 units compared", "below", 2,
               speed.compare_seconds(), "s"),
    ]  # fmt: skip


def rounds(quick: bool) -> list[Result]:
    """Times of two agents of one run, on a machine whose rounds differ."""
    from stats.rounds import NOISES, count_claims

    times = 200 if quick else 2000
    wrong = {
        f"{noise}, {n} rounds": count_claims(noise, n, 1.0, times) for noise in NOISES for n in (3, 5, 10)
    }
    worst = max(wrong, key=lambda cell: wrong[cell])
    planted = {"2 × slower, 3 rounds": (3, 2.0), "20 % slower, 10 rounds": (10, 1.2)}
    found = {
        name: {noise: count_claims(noise, *size, times) for noise in NOISES} for name, size in planted.items()
    }
    return [
        _rate("rounds-false-claims", f"Times of identical agents in rounds: p < 0.05, worst noise ({worst})", "at most",
              0.06, wrong[worst], times, values=wrong),
        *(_rate(f"rounds-found-{_slug(name)}", f"{name}, passes that vary by 10 %: found", "at least", 0.9, shares["normal"],
                times, _list(shares), shares) for name, shares in found.items()),
    ]  # fmt: skip


def nodes(quick: bool) -> list[Result]:
    """Times of two arms on three nodes, one of them half as fast again, in unequal shares."""
    from stats.nodes import count_claims

    times = 200 if quick else 4000
    ways = ("processes", "rounds")
    wrong = {f"{way}, {n} a side": count_claims(way, n, 1.0, times) for way in ways for n in (12, 20, 40)}
    worst = max(wrong, key=lambda cell: wrong[cell])
    naive = count_claims("processes, without blocks", 20, 1.0, times)
    found = {way: count_claims(way, 20, 1.1, times) for way in ways}
    return [
        _rate("nodes-false-claims", f"Identical arms on unlike nodes in unequal shares: p < 0.05, worst ({worst})", "at most",
              0.06, wrong[worst], times, f"Without the node as a block: {naive:.1%}.", wrong),
        _rate("nodes-found", "10 % slower on unlike nodes, 20 processes or rounds a side: found", "at least", 0.7,
              min(found.values()), times, _list(found), found),
    ]  # fmt: skip


def _list(shares: Mapping[str, float]) -> str:
    return "; ".join(f"{name} {share:.1%}" for name, share in shares.items()) + "."


def lost_cases(quick: bool) -> list[Result]:
    """Scores of two versions of an agent on the same 30 cases."""
    from stats.lost_cases import AGENTS, REPETITIONS, simulate

    gates = 200 if quick else 2000
    same = {(name, k): simulate(name, k, gates) for name in AGENTS for k in REPETITIONS}
    wrong = {f"{name}, {k} repetitions": rates.worse for (name, k), rates in same.items()}
    worst = max(wrong, key=lambda cell: wrong[cell])
    broken = {(name, k): simulate(name, k, gates, lost=5) for name in AGENTS for k in (3, 5)}
    covered = {f"{name}, {k} repetitions": rates.covered for (name, k), rates in broken.items()}
    found = {k: simulate("passes 9 in 10", k, gates, lost=5).worse for k in REPETITIONS}
    least = {1: 0.15, 3: 0.78, 5: 0.95}
    return [
        _rate("lost-cases-false-alarms", f"A gate on 30 cases finds scores worse without a change, worst ({worst})",
              "at most", 0.03, wrong[worst], gates, "The test is at 2.5 % and exact.", wrong),
        *(_rate(f"lost-cases-found-{k}", f"5 of 30 cases lost, which passed 9 in 10: found with {k} repetition{'s' * (k > 1)}",
                "at least", least[k], found[k], gates) for k in REPETITIONS),
        _worst("lost-cases-coverage", "Interval of the difference with 5 of 30 cases lost, worst cell", 0.93, covered, gates),
    ]  # fmt: skip


def change_points(quick: bool) -> list[Result]:
    from stats import histories

    found = histories.measure(quick)
    promised: dict[str, tuple[str, str, float, str]] = {
        "no_change_flagged": ("Histories without a change that are flagged", "at most", 0.01, "share"),
        "no_change_flagged_worst_family": ("The same with the worst noise", "at most", 0.03, "share"),
        "real_like_flagged": ("Quiet histories with noise like that of real ones that are flagged", "at most", 0.1, "share"),
        "real_like_flagged_worst": ("The same with the worst noise", "at most", 0.1, "share"),
        "steps_found_5": ("Steps of 5 % found in a history", "at least", 0.95, "share"),
        "steps_found_10": ("Steps of 10 % found in a history", "at least", 0.99, "share"),
        "steps_found_20": ("Steps of 20 % found in a history", "at least", 0.995, "share"),
        "accuracy_5": ("Histories judged right, half of them with a step of 5 %", "at least", 0.97, "share"),
        "accuracy_10": (
            "Histories judged right, half of them with a step of 10 %",
            "at least",
            0.98,
            "share",
        ),
        "seconds_10000_points": ("Change points of 10,000 points, processor time", "at most", 2, "s"),
        "seconds_100000_points": ("Change points of 100,000 points, processor time", "at most", 5, "s"),
        "seconds_1000000_points": ("Change points of 1,000,000 points, processor time", "at most", 60, "s"),
        "seconds_1000_histories_of_200": (
            "Change points of 1,000 histories of 200, processor time",
            "at most",
            20,
            "s",
        ),
    }  # fmt: skip
    return _measured(found, {name: promise for name, promise in promised.items() if name in found})


def short_drifts(quick: bool) -> list[Result]:
    from stats import drifts

    repetitions = 20 if quick else 400
    cells = drifts.drift_cells(repetitions)
    promised = [cell for cell in cells if (cell.size, cell.noise) == drifts.PROMISED]
    worst = min(promised, key=lambda cell: cell.drift)
    shares = {cell.name: cell.drift for cell in cells}
    told = "; ".join(f"{name} {share:.0%}" for name, share in shares.items())
    quiet = drifts.quiet_flagged(repetitions)
    return [
        _rate("drifts-found", f"Drifts of 20 % at 2 % noise found from 16 points on, worst length ({worst.n})",
              "at least", 0.95, worst.drift, repetitions, f"every size, noise and length: {told}.", shares),
        _rate("drifts-called-steps", "The same drifts called two steps or more", "at most", 0.01,
              max(cell.two_steps for cell in promised), repetitions),
        _rate("steps-called-drifts", "Steps of 20 % at 2 % noise in short histories called a drift", "at most", 0.01,
              drifts.steps_called_drifts(repetitions), repetitions * len(drifts.LENGTHS)),
        _rate("short-flagged", "Histories of 16 to 60 points without a change that are flagged as step or drift", "at most",
              0.01, sum(quiet.values()) / len(quiet), repetitions * len(drifts.LENGTHS) * len(quiet),
              _list(quiet), quiet),
    ]  # fmt: skip


def leaderboards(quick: bool) -> list[Result]:
    from stats import boards

    return _measured(
        boards.measure(quick),
        {
            "equal_agents_separated": ("Boards of ten equal agents that put one above another", "at most", 0.05, "share"),
            "leaderboard_seconds": ("Leaderboard over 1,000,000 stored executions", "at most", 0.05, "s"),
            "leaderboard_command_seconds": ("`assay leaderboard` over 1,000,000 stored executions", "at most", 0.3, "s"),
            "compare_command_seconds": ("`assay compare` of 100,000 against 100,000 stored executions", "at most", 2, "s"),
        },
    )  # fmt: skip


_CLOCK_CLAIMS = {
    "board overall": "Boards that tell identical agents apart overall",
    "board speed": "The same by speed",
    "compare": "Comparisons of identical agents that claim something",
    "gate": "Gates that fail without a change, two runs in a fresh database",
    "gate with a history": "The same after seven runs and more",
    "gate --rerun-baseline": "The same with `--rerun-baseline`",
}


def clocks(quick: bool) -> list[Result]:
    """Through the command line, with real clocks, on a machine that is busy by turns."""
    from stats.clocks import measure

    measured = measure(quick)
    results = []
    for kind, claim in _CLOCK_CLAIMS.items():
        cells = {name: tallies[kind] for name, tallies in measured.false.items()}
        n, claims = sum(one.n for one in cells.values()), sum(one.claims for one in cells.values())
        told = "; ".join(f"{name}: {one.claims} of {one.n}" for name, one in cells.items())
        results.append(_rate(f"clocks-{_slug(kind)}", claim, "at most", 0.05, claims / n, n, f"{told}."))
    for planted, tallies in measured.found.items():
        for kind, one in tallies.items():
            name = f"clocks-{_slug(planted)}-{_slug(kind)}"
            results.append(
                _rate(name, f"{planted}: found by {kind}", "at least", 0.8, one.claims / one.n, one.n)
            )
    return results


def recorded(quick: bool) -> list[Result]:
    """Agents that answer from a file, through the command line."""
    from stats.recorded import FACTOR, count

    times = 5 if quick else 100
    same, faster = count(1.0, times), count(FACTOR, times)
    right = sum("seconds 0." in claim for claim in faster.examples)
    return [
        _rate("recorded-false-claims", "Comparisons of recorded agents with times alike that claim something", "at most",
              0.055, same.claims / same.n, same.n),
        _rate("recorded-found", "Recorded agents of which one took 30 % less: called better", "at least", 0.9,
              right / faster.n, faster.n),
    ]  # fmt: skip


def capacities(quick: bool) -> list[Result]:
    """`assay load --find-capacity` against servers whose capacity is known."""
    from stats.capacities import CELLS, SLOW, WITH_OBJECTIVE, searches

    number = 4 if quick else 40
    every = [cell.name for cell in (*CELLS, SLOW, *WITH_OBJECTIVE)]
    found = _in_two_processes(partial(searches, number=number), every)
    close = {
        name: sum(abs(one.rate - 1) <= 0.05 for one in found[name]) / number
        for name in (c.name for c in CELLS)
    }
    covered = {name: sum(one.is_covered for one in all_) / number for name, all_ in found.items()}
    least = min(covered, key=lambda name: covered[name])
    pooled = sum(covered.values()) / len(covered)
    longest = max(one.seconds for all_ in found.values() for one in all_)
    return [
        _worst("capacity-close", "Capacities of M/M/c and M/D/c servers found within 5 %, worst cell", 0.9, close, number),
        _rate("capacity-coverage", f"Intervals that hold the true capacity, pooled; worst {least}, {covered[least]:.0%}", "at least",
              0.9, pooled, number * len(covered), values=covered),
        _plain("capacity-seconds", "The longest of these searches", "at most", 200, longest, "s"),
    ]  # fmt: skip


def _slug(text: str) -> str:
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")


def forecasts(quick: bool) -> list[Result]:
    from stats.forecasts import measure

    found = []
    for one in measure(quick):
        name, sizes = f"forecast-{one.truth.name}-{one.way}", ", ".join(map(str, one.sizes))
        detail = f"{sizes} {one.way} were forecast, one number for each pilot run."
        claim = f"{one.truth.claim}: found with as many {one.way} as `assay power` says"
        found.append(_rate(name, claim, "at least", 0.70, one.share, one.runs, detail))
        found.append(_rate(f"{name}-most", "The same", "at most", 0.95, one.share, one.runs))
    return found


PARTS: dict[str, Callable[[bool], list[Result]]] = {
    "comparisons": comparisons,
    "power": power,
    "estimates": estimates,
    "stopping": stopping,
    "families": families,
    "rounds": rounds,
    "nodes": nodes,
    "lost-cases": lost_cases,
    "change-points": change_points,
    "short-drifts": short_drifts,
    "leaderboards": leaderboards,
    "forecasts": forecasts,
    "clocks": clocks,
    "recorded": recorded,
    "capacities": capacities,
}


def _in_two_processes(simulate: Callable[[str], T], names: Sequence[str]) -> dict[str, T]:
    with ProcessPoolExecutor(2) as pool:
        return dict(zip(names, pool.map(simulate, names), strict=True))


def _measured(
    found: Mapping[str, float], promised: Mapping[str, tuple[str, str, float, str]]
) -> list[Result]:
    return [
        _plain(name.replace("_", "-"), claim, bound, limit, found[name], unit)
        for name, (claim, bound, limit, unit) in promised.items()
    ]


def _pooled(
    name: str, claim: str, bound: str, limit: float, counts: Mapping[str, Counts], shares: Mapping[str, float], detail: str = ""
) -> Result:  # fmt: skip
    share = sum(shares.values()) / len(shares)
    return _rate(name, claim, bound, limit, share, sum(one.n for one in counts.values()), detail)


def _extreme(
    name: str, claim: str, bound: str, limit: float, counts: Mapping[str, Counts], shares: Mapping[str, float]
) -> Result:
    worst = (max if bound == "at most" else min)(shares, key=lambda cell: shares[cell])
    return _rate(name, f"{claim} ({worst})", bound, limit, shares[worst], counts[worst].n, values=shares)


def _worst(name: str, claim: str, limit: float, shares: Mapping[str, float], n: int) -> Result:
    worst = min(shares, key=lambda cell: shares[cell])
    return _rate(name, f"{claim} ({worst})", "at least", limit, shares[worst], n, values=shares)


def _rate(
    name: str, claim: str, bound: str, limit: float, share: float, n: int, detail: str = "", values: Mapping[str, float] | None = None
) -> Result:  # fmt: skip
    figure = Figure(share, *wilson(share, n), n)
    kept = {cell: [value] for cell, value in (values or {}).items()}
    return Result(
        Promise(name, claim, Bound(bound), limit, "share"), "share", figure, figure, {}, detail, kept
    )


def _plain(name: str, claim: str, bound: str, limit: float, value: float, unit: str = "") -> Result:
    figure = Figure(value, value, value, 1)
    return Result(Promise(name, claim, Bound(bound), limit, unit), unit, figure, figure)


if __name__ == "__main__":
    sys.exit(main())
