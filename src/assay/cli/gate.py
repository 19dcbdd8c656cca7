"""`assay gate`: check a run against a baseline, for CI.

A gate fails on evidence only: a metric that got worse by more than its tolerance and more than noise explains, lost cases
beyond `--max-lost`, or a requirement that is not met. The exit code is 0 if the run passes, 1 if it fails, and 2 if the
runs are not comparable. With `--rerun-baseline` both versions run again, interleaved, and that run is judged.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assay.cli.options import shared_option
from assay.cli.session import Session, common
from assay.cli.values import share_of
from assay.text import shell_command

if TYPE_CHECKING:
    from assay.analysis.comparison.policy import Tolerances
    from assay.model.regression import Gate
    from assay.store.store import Store


@click.command()
@click.argument("ref", metavar="[RUN]", default="last")
@click.option(
    "--baseline",
    metavar="NAME",
    show_default="main",
    help="Name of the baseline, or a result file.",
)
@click.option(
    "--tolerance",
    "widths",
    metavar="[METRIC=]X%",
    multiple=True,
    help="Largest loss that still passes, for all metrics or for one. Default: 3%, for scores 1 point.",
)
@shared_option(
    "--metric", "Judge only this metric; may be repeated. Default: score, seconds, cost and completed."
)
@click.option(
    "--max-lost",
    type=click.IntRange(min=0),
    metavar="N",
    help="Fail when more than N cases are lost: passed in every repetition before and in none now.",
)
@click.option(
    "--require",
    "required",
    metavar="NAME>=X,…",
    multiple=True,
    help="Fail unless every trial meets these limits, as in accuracy>=0.9,p95_seconds<2; needs no baseline.",
)
@click.option(
    "--junit", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write JUnit XML."
)
@click.option(
    "--markdown",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a comment for a pull request.",
)
@click.option(
    "--rerun-baseline",
    "is_rerun",
    is_flag=True,
    help="Run the agents of the baseline and of RUN again, interleaved in one new run, and judge that run: this removes run-to-run noise from times.",
)
@shared_option(
    "--repetitions",
    "With --rerun-baseline: rounds of a suite, or processes of an experiment. Default: as in RUN.",
)
@common
def gate(
    session: Session,
    ref: str,
    baseline: str | None,
    widths: tuple[str, ...],
    junit: Path | None,
    markdown: Path | None,
    **options: Any,
) -> int:
    """Check RUN against a baseline. Exits with 1 if it got worse or does not meet a requirement, else with 0.

    RUN is an id, a prefix of one, `last`, @BASELINE or a result file. Differences that may be noise
    pass; the output says how much more to run to settle them. Exits with 2 if the two runs are not comparable.
    """
    from assay.pipeline.requirements import gate_with_requirements
    from assay.report.documents.junit import gate_junit
    from assay.report.pages.gate_markdown import gate_markdown

    if options["repetitions"] is not None and not options["is_rerun"]:
        raise click.UsageError("--repetitions works only with --rerun-baseline; without it nothing is run.")
    tolerances = tolerances_of(widths)
    criteria = (widths, options["metrics"], options["max_lost"] is not None, options["is_rerun"])
    with session.store() as store:
        found = gate_with_requirements(
            store,
            ref,
            baseline,
            options["required"],
            lambda name: _run_gate(session, store, ref, name, tolerances, options),
            needs_baseline=any(criteria),
        )
    # Files first: a CI job that shows them must find them, whatever becomes of the output.
    for path, write in ((junit, gate_junit), (markdown, gate_markdown)):
        if path is not None:
            _write(path, write(found))
    if session.is_json:
        from assay.report.documents.comparison import gate_document

        session.emit(gate_document(found))
    else:
        _print(session, found, ref)
    return 0 if found.passed else 1


def _run_gate(
    session: Session, store: Store, ref: str, baseline: str, tolerances: Tolerances, options: dict[str, Any]
) -> Gate:
    """Judge the stored run, or with --rerun-baseline a new run of both versions."""
    from assay.pipeline.gate import gate_refs, gate_sides

    criteria = {"metrics": options["metrics"], "tolerances": tolerances, "max_lost": options["max_lost"]}
    if not options["is_rerun"]:
        return gate_refs(store, ref, baseline, **criteria)
    from assay.cli.progress import watching
    from assay.pipeline.rerun import rerun_gate

    judge = partial(gate_sides, **criteria)
    try:
        return rerun_gate(
            store, ref, baseline, judge, lambda plan: watching(session, plan), options["repetitions"]
        )
    except KeyboardInterrupt:
        # A rerun cannot be resumed: its checkouts are removed with this command.
        session.say("Interrupted before the gate had a verdict. Run it again.")
        raise


def tolerances_of(widths: tuple[str, ...]) -> Tolerances:
    """`5%` is the tolerance of every metric, `METRIC=5%` that of one."""
    from assay.analysis.comparison.policy import Tolerances

    general: float | None = None
    of_metric: dict[str, float] = {}
    for text in widths:
        # From the right: a metric may be called anything, the width has no equals sign.
        metric, sign, width = text.rpartition("=")
        if sign and metric:
            of_metric[metric] = share_of(width, "--tolerance")
        else:
            general = share_of(text, "--tolerance")
    return Tolerances(general, of_metric)


def _write(path: Path, text: str) -> None:
    """Write a file that CI collects; its folder is made if it does not exist."""
    from assay.errors import ReportError
    from assay.plugin.private_files import make_folder, write_private

    try:
        make_folder(path.parent)
        write_private(path, text)
    except OSError as error:
        raise ReportError(f"'{path}' cannot be written: {error.strerror}.") from None


def _print(session: Session, found: Gate, ref: str) -> None:
    """The gate for people, and what to do next."""
    from assay.report.console.gate import print_gate

    print_gate(found, session.console())
    if not found.has_baseline:
        if Path(ref).suffix != ".json":
            session.next(f"assay show {found.b.run.id}")
        return
    session.next(*_next_commands(found, ref))


def _next_commands(found: Gate, ref: str) -> list[str]:
    """What to do next. A result file is not in the store: it can be compared, but not shown or made a baseline."""
    # After a gate that passed for good the run may become the baseline; after one that passed because nothing is proved, or
    # failed, the next step is to look closer.
    files = [Path(found.baseline).is_file(), Path(ref).suffix == ".json"]
    sides = [found.baseline if files[0] else found.a.run.id, ref if files[1] else found.b.run.id]
    compare, show = shell_command("compare", *map(str, sides[:2])), f"assay show {found.b.run.id}"
    if any(files):
        return [compare]
    judged = found.rerun.judged if found.rerun is not None else found.b.run.id
    keep = shell_command("baseline set", found.baseline, judged)
    if found.is_no_worse:
        return [keep, show]
    if found.rerun is not None:
        return [show]
    return (
        [compare, show]
        if found.passed
        else [compare, *(shell_command("regressions", name) for name in _guilty(found))]
    )


def _guilty(found: Gate) -> list[str]:
    """The agent of the first trial that got worse, lost cases or does not meet a requirement."""
    from assay.model import Verdict

    lost = (flips.trial for flips in found.flips if flips.lost)
    unmet = (requirement.trial for requirement in found.unmet)
    judged = (comparison.trial_b for comparison in found.select_by_verdict(Verdict.WORSE))
    worse = {*found.broken, *found.unscored, *found.incomplete, *judged, *lost, *unmet}
    return [trial.stored.trial.agent.name for trial in found.b.trials if trial.name in worse][:1]
