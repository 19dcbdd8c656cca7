"""The references that ratings are relative to, for the terminal and as JSON.

At the value of its reference a rating is 0.5. Changing references therefore changes ratings of runs that are already stored;
`change_table` shows by how much.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from assay.model.page import Cell, Table
from assay.model.rating import QUANTITIES, Ratings, ReferenceValue
from assay.report.figures import NOTHING
from assay.units import seconds, significant, usd

if TYPE_CHECKING:
    from assay.model import Suite
    from assay.model.rating import ChangedRating, ReferenceChange, ShownReference

_PER_SOLVED = " per solved case"


def quantity_text(name: str, value: float) -> str:
    """
    >>> quantity_text("seconds", 1.5), quantity_text("tokens", 300.0), quantity_text("memory_mb", 64.0)
    ('1.5 s', '300 tokens per solved case', '64 MB peak memory')
    """
    match name:
        case "seconds":
            return seconds(value)
        case "usd":
            return usd(value) + _PER_SOLVED
        case "tokens":
            return f"{significant(value)} tokens{_PER_SOLVED}"
        case "cpu_seconds":
            return f"{seconds(value)} CPU"
        case _:
            return f"{significant(value)} MB peak memory"


def reference_document(reference: ReferenceValue) -> dict[str, Any]:
    """The run and its date only where the reference comes from a run."""
    return {
        "value": reference.value,
        "source": reference.source,
        **({} if reference.run_id is None else {"run_id": reference.run_id}),
        **({} if reference.ended is None else {"date": reference.ended.isoformat()}),
        **({} if reference.origin is None else {"origin": reference.origin}),
    }


def references_document(
    suite: Suite, references: Iterable[ShownReference], change: ReferenceChange | None = None
) -> dict[str, Any]:
    """The references of a suite and, where they were just changed, what that changed."""
    return {
        "suite": suite.name,
        "version": suite.version,
        "hash": suite.hash,
        "references": [
            {
                "benchmark": row.scope.benchmark,
                "hash": row.scope.hash,
                "simulated": row.scope.simulated,
                "dimension": row.dimension,
                "quantity": row.quantity,
                **(reference_document(row.reference) if row.reference else {"value": None, "source": None}),
            }
            for row in references
        ],
        **(_change_document(change) if change else {}),
    }


def _change_document(change: ReferenceChange) -> dict[str, Any]:
    return {
        "set": change.run_id,
        "rated_again": change.rated,
        "changed_references": [
            {
                "benchmark": reference.after.scope.benchmark,
                "simulated": reference.after.scope.simulated,
                "quantity": reference.after.quantity,
                "before": reference.before and reference.before.value,
                "after": reference.after.reference and reference.after.reference.value,
            }
            for reference in change.references
        ],
        "changed_ratings": [
            {
                "run_id": rating.run_id,
                "agent": rating.agent,
                "benchmark": rating.benchmark,
                "before": dict(rating.before),
                "after": dict(rating.after),
            }
            for rating in change.ratings
        ],
        "benchmarks_left_out": list(change.left_out),
    }


def reference_notes(ratings: Iterable[Ratings]) -> list[str]:
    """What each dimension was compared with in these ratings, each source once.

    Quantities that no agent was rated by are left out.
    """
    # Most often all agents have one reference run, and this becomes one line; dictionaries keep the order and drop repeats.
    places: dict[tuple[str, str, str], None] = {}
    for rated in ratings:
        for name, reference in used_references(rated).items():
            places[str(reference), QUANTITIES[name], quantity_text(name, reference.value)] = None
    by_source: dict[str, dict[str, list[str]]] = {}
    for source, dimension, value_text in places:
        by_source.setdefault(source, {}).setdefault(dimension, []).append(value_text)
    return [
        f"rated 0.5 at the reference ({source}): "
        + "; ".join(f"{dimension} {', '.join(values)}" for dimension, values in dimensions.items())
        for source, dimensions in by_source.items()
    ]


def used_references(ratings: Ratings) -> dict[str, ReferenceValue]:
    """Those that a rating rests on."""
    return {name: reference for name, reference in ratings.references.items() if _is_used(ratings, name)}


def _is_used(ratings: Ratings, name: str) -> bool:
    rating = ratings.dimensions.get(QUANTITIES[name])
    if rating is None or rating.value is None:
        return False
    if QUANTITIES[name] == "efficiency":
        return name in rating.basis
    return rating.basis != "free"


def reference_table(references: Iterable[ShownReference]) -> Table:
    """References as rows; the name of a benchmark stands once for all of its dimensions."""
    rows = []
    previous = ""
    for row in references:
        benchmark = f"{row.scope.benchmark}{' (simulated)' * row.scope.simulated}"
        quantity, reference = row.quantity, row.reference
        rows.append(
            [
                Cell("" if benchmark == previous else benchmark),
                Cell(row.dimension),
                Cell(
                    f"{NOTHING} ({quantity})"
                    if reference is None
                    else quantity_text(quantity, reference.value)
                ),
                Cell("nothing yet", tone="quiet") if reference is None else Cell(str(reference)),
            ]
        )
        previous = benchmark
    return Table(("Benchmark", "Dimension", "Reference", "From"), rows, words=(1, 2, 3))


def change_table(changed: Sequence[ChangedRating]) -> Table:
    """A row for each trial, with the ratings that differ for any of them."""
    dimensions = [
        name
        for name in ("overall", *dict.fromkeys(QUANTITIES.values()))
        if any(rating.before.get(name) != rating.after.get(name) for rating in changed)
    ]
    rows = []
    for rating in changed:
        cells = [rating.run_id, rating.agent, rating.benchmark]
        for name in dimensions:
            values = (rating.before.get(name), rating.after.get(name))
            texts = [NOTHING if value is None else f"{value:.3f}" for value in values]
            cells.append(texts[0] if texts[0] == texts[1] else " → ".join(texts))
        rows.append([Cell(text) for text in cells])
    titles = ("Run", "Agent", "Benchmark", *(name.capitalize() for name in dimensions))
    return Table(titles, rows, words=(1, 2))
