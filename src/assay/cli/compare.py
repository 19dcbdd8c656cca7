"""`assay compare`: is B better than A, or is it noise?"""

from __future__ import annotations

from typing import Any

import click

from assay.cli.session import Session, common


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--metric", "metrics", metavar="M", multiple=True, help="Only this metric; may be given several times."
)
@click.option("--tolerance", metavar="X%", help="Differences within it count as the same. Default: 3%.")
@click.option("--fail-on", type=click.Choice(["worse"]), help="Exit with 1 when a metric got worse.")
@common
def compare(
    session: Session, a: str, b: str, metrics: tuple[str, ...], tolerance: str | None, fail_on: str | None
) -> int:
    """Compare two runs or result files. A is the reference: *better* means that B is better.

    A run is an id, a prefix of one, `last` or @BASELINE. The unit of comparison is the process, so run both sides
    with processes of ten or more.
    """
    from assay.model import Verdict
    from assay.pipeline import comparing

    with session.store() as store:
        found = comparing.compared(store, a, b, metrics=list(metrics) or None, tolerance=_share(tolerance))
    if session.is_json:
        session.emit(document(found))
    else:
        from assay.report.console import print_comparisons

        print_comparisons(found.comparisons, found.doubts, session.console())
        session.next(
            f"assay report {found.b.run.id} --format html", f"assay baseline set main {found.b.run.id}"
        )
    return 1 if fail_on and any(one.verdict is Verdict.WORSE for one in found.comparisons) else 0


def _share(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise click.UsageError(f"--tolerance '{text}' is neither a percentage nor a number.") from None
    if not 0 <= value < 1:
        raise click.UsageError(f"--tolerance '{text}' must be between 0 and 100 %.")
    return value


def document(found: Any) -> dict[str, Any]:
    return {
        "schema": "assay.comparison/1",
        "a": found.a.run.id,
        "b": found.b.run.id,
        "comparisons": [
            {
                "metric": one.metric.name,
                "unit": one.metric.unit,
                "better": one.metric.better,
                "trial_a": one.trial_a,
                "trial_b": one.trial_b,
                "a": one.value_a,
                "b": one.value_b,
                "units_a": one.units_a,
                "units_b": one.units_b,
                "ratio": one.ratio,
                "interval": None if one.low is None else [one.low, one.high],
                "p": one.p,
                "p_corrected": one.p_corrected,
                "tolerance": one.tolerance,
                "verdict": one.verdict,
                "method": one.method,
                "reason": one.reason,
            }
            for one in found.comparisons
        ],
        "warnings": [{"code": d.code, "message": d.message, "hint": d.hint} for d in found.doubts],
    }
