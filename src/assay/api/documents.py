"""`assay.compare`, `assay.gate` and `assay.leaderboard`: the documents of the commands, from Python.

Each function checks its keywords, opens the store for the time of the call, and returns the document that the command prints
with `--json`, together with what the command would print without. Nothing is computed here that `pipeline` does not compute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.analysis.comparison.policy import Tolerances
from assay.api.options import CompareOptions, GateOptions, LeaderboardOptions, as_list, check_options
from assay.api.results import ComparisonResult, GateResult, LeaderboardResult
from assay.api.run import open_store, run_outside_event_loop, watching
from assay.errors import PlanError
from assay.model.regression import Gate
from assay.pipeline import compare as comparing
from assay.pipeline import leaderboard as standing
from assay.pipeline.gate import gate_refs, gate_sides
from assay.pipeline.requirements import gate_with_requirements
from assay.report.console.gate import print_gate
from assay.report.console.sections import print_page
from assay.report.documents.comparison import comparison_document, gate_document, history_document
from assay.report.documents.leaderboard import all_pairs_document, leaderboard_document
from assay.report.pages.board import all_pairs_page, leaderboard_page
from assay.report.pages.comparison import comparison_page, history_page
from assay.spec.settings import find_settings
from assay.store.store import Store

if TYPE_CHECKING:
    from typing_extensions import Unpack

ROWS = 20


def compare(*sides: str | Path, **options: Unpack[CompareOptions]) -> ComparisonResult:
    """Compare runs, agents (`name` or `name@version`) or result files; the first side is the reference.

    The document of `assay compare --json`: *better* means that the second side is better.
    """
    given = check_options("compare", CompareOptions, options)
    if len(sides) < 2:
        raise PlanError("compare() needs two sides or more, as in: compare('fast', 'careful').")
    kind = given.get("type") or ("head_to_head" if len(sides) == 2 else "multi_agent")
    names = [str(side) for side in sides]
    with _open_store(given) as store:
        if kind == "multi_agent":
            return _all_pairs(store, names, given)
        if kind == "time_series":
            return _history(store, names, given)
        if len(sides) != 2:
            raise PlanError(f"head_to_head compares two sides, not {len(sides)}. Use: type='multi_agent'")
        return _compare_two(store, names, given)


def _open_store(given: Mapping[str, Any]) -> Store:
    return open_store(given.get("db"), find_settings(Path.cwd()))


def _compare_two(store: Store, sides: Sequence[str], given: Mapping[str, Any]) -> ComparisonResult:
    """Two sides, metric by metric. If metrics are requested, the ratings, which rest on all of them, are not shown."""
    found = comparing.compare_refs(
        store,
        sides[0],
        sides[1],
        metrics=as_list(given.get("metrics")) or None,
        tolerance=given.get("tolerance"),
        suite=given.get("suite"),
    )

    return ComparisonResult(
        comparison_document(found),
        "comparisons",
        lambda console: print_page(comparison_page(found, sides, as_list(given.get("metrics"))), console),
    )


def _all_pairs(store: Store, sides: Sequence[str], given: Mapping[str, Any]) -> ComparisonResult:
    chosen = comparing.find_sides(store, sides, given.get("suite"))
    matrix = comparing.all_pairs(store, sides, sides=chosen)
    document = all_pairs_document(matrix, dict(zip(sides, chosen.reports, strict=True)), chosen.doubts)
    return ComparisonResult(
        document,
        "agent_comparison_matrix",
        lambda console: print_page(all_pairs_page(matrix, sides, chosen), console),
    )


def _history(store: Store, sides: Sequence[str], given: Mapping[str, Any]) -> ComparisonResult:
    found = comparing.courses(store, sides, as_list(given.get("metrics")), given.get("suite"))
    return ComparisonResult(
        history_document(found, sides),
        "courses",
        lambda console: print_page(history_page(found, tuple(sides)), console),
    )


def gate(run: str | Path = "last", **options: Unpack[GateOptions]) -> GateResult:
    """Check a run against a baseline.

    `passed` says whether all results are there, all requirements are met and nothing got worse as far as the data shows.
    Returns the document of `assay gate --json`. `tolerance` is a share for all metrics, or a mapping of metrics to shares.
    `max_lost` is the number of cases that may be lost, `require` the limits that every trial must meet.
    With `rerun_baseline`, both sides are run again, interleaved in one new run, and that run is judged.
    """
    given = check_options("gate", GateOptions, options)
    if extra := [
        name for name in ("repetitions", "progress") if name in given and not given.get("rerun_baseline")
    ]:
        raise PlanError(
            f"gate(): {', '.join(extra)} works only with rerun_baseline=True; without it nothing is run."
        )
    # With rerun_baseline a gate runs agents, and async ones need an event loop of their own.
    found = run_outside_event_loop(lambda: _gate(str(run), given))
    return GateResult(gate_document(found), "comparisons", lambda console: print_gate(found, console))


def _gate(run: str, given: Mapping[str, Any]) -> Gate:
    """The gate that `assay gate` makes of the same options."""
    width = given.get("tolerance")
    tolerances = Tolerances(None, width) if isinstance(width, Mapping) else Tolerances(width, {})
    criteria: dict[str, Any] = {
        "metrics": as_list(given.get("metrics")),
        "tolerances": tolerances,
        "max_lost": given.get("max_lost"),
    }
    with _open_store(given) as store:
        return gate_with_requirements(
            store,
            run,
            given.get("baseline"),
            given.get("require", ()),
            lambda baseline: _compare_with(store, run, baseline, criteria, given),
            # Each of these asks for a comparison: requirements alone would be a gate that ignores them.
            needs_baseline=bool({"metrics", "tolerance", "max_lost", "rerun_baseline"} & given.keys()),
        )


def _compare_with(
    store: Store, run: str, baseline: str, criteria: Mapping[str, Any], given: Mapping[str, Any]
) -> Gate:
    if not given.get("rerun_baseline"):
        return gate_refs(store, run, baseline, **criteria)
    from assay.pipeline.rerun import rerun_gate

    judge = partial(gate_sides, **criteria)
    return rerun_gate(
        store, run, baseline, judge, lambda plan: watching(plan, given), given.get("repetitions")
    )


def leaderboard(**options: Unpack[LeaderboardOptions]) -> LeaderboardResult:
    """Agents ranked by their latest results, a leaderboard for each suite: the document of `assay leaderboard --json`."""
    given = check_options("leaderboard", LeaderboardOptions, options)
    limit = given.pop("limit", ROWS)
    metric = given.pop("metric", "overall")
    with _open_store(given) as store:
        given.pop("db", None)
        found = standing.overview(store, standing.filter_of(**given), metric)
    return LeaderboardResult(
        leaderboard_document(found, limit),
        lambda console: print_page(leaderboard_page(found, limit), console),
    )
