"""What ratings are relative to, for the terminal and as documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from assay.model.rating import QUANTITIES, Ratings, ReferenceValue
from assay.report.figures import NOTHING
from assay.report.screen import literal, new_table
from assay.units import seconds, significant, usd

if TYPE_CHECKING:
    from rich.table import Table

_PER_SOLVED = " per solved case"


def quantity_text(name: str, value: float) -> str:
    """
    >>> quantity_text("seconds", 1.5), quantity_text("tokens", 300.0), quantity_text("memory_mb", 64.0)
    ('1.50 s', '300 tokens per solved case', '64 MB peak memory')
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


def reference_notes(ratings: Iterable[Ratings]) -> list[str]:
    """What each dimension was compared with in these ratings, each source once.

    Quantities that no agent was rated by are left out.
    """
    places: dict[tuple[str, str, str], None] = {}
    for rated in ratings:
        for name, reference in used_references(rated).items():
            places[str(reference), QUANTITIES[name], quantity_text(name, reference.value)] = None
    by_source: dict[str, dict[str, list[str]]] = {}
    for source, dimension, shown in places:
        by_source.setdefault(source, {}).setdefault(dimension, []).append(shown)
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


def reference_table(rows: Iterable[tuple[str, str, str, ReferenceValue | None]]) -> Table:
    """Rows of benchmark, dimension, quantity and reference."""
    table = new_table()
    for title in ("Benchmark", "Dimension", "Reference", "From"):
        table.add_column(title, overflow="fold")
    shown = ""
    for benchmark, dimension, quantity, reference in rows:
        value = f"{NOTHING} ({quantity})" if reference is None else quantity_text(quantity, reference.value)
        source = "nothing yet" if reference is None else str(reference)
        table.add_row(
            literal("" if benchmark == shown else benchmark),
            literal(dimension),
            literal(value),
            literal(source, "dim" if reference is None else ""),
        )
        shown = benchmark
    return table


def change_table(
    rows: Iterable[tuple[str, str, str, Mapping[str, float | None], Mapping[str, float | None]]],
) -> Table:
    """Rows of run, agent, benchmark, and the ratings before and after."""
    changed = list(rows)
    shown = [
        name
        for name in ("overall", *dict.fromkeys(QUANTITIES.values()))
        if any(before.get(name) != after.get(name) for *_, before, after in changed)
    ]
    table = new_table()
    table.add_column("Run", no_wrap=True)
    for title in ("Agent", "Benchmark"):
        table.add_column(title, overflow="fold")
    for name in shown:
        table.add_column(name.capitalize(), justify="right", no_wrap=True)
    for run_id, agent, benchmark, before, after in changed:
        changes = [_change(before.get(name), after.get(name)) for name in shown]
        table.add_row(literal(run_id), literal(agent), literal(benchmark), *map(literal, changes))
    return table


def _change(before: float | None, after: float | None) -> str:
    texts = [NOTHING if value is None else f"{value:.3f}" for value in (before, after)]
    return texts[0] if texts[0] == texts[1] else " → ".join(texts)
