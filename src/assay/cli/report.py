"""`assay report`: write a stored run as documents, and the artifacts of its executions as files.

Formats are reporters, found by name like any plug-in; `--load` makes those of a file of the user's known. Everything is made from
the store, so a report can be written again in a different format at any time.
"""

from __future__ import annotations

from pathlib import Path

import click

from assay.cli.options import shared_option
from assay.cli.output import echo
from assay.cli.session import Session, common
from assay.text import quote_word


@click.command()
@click.argument("ref", metavar="[RUN]", default="last")
@click.option("--format", "formats", metavar="FMT,…",
              help="html, md, json, csv, png, junit, or a plug-in's name; several with commas. Default: html.")  # fmt: skip
@click.option("--artifacts", is_flag=True,
              help="Write the files that executions left (profiles, samples, logs); with --format, documents as well.")  # fmt: skip
@shared_option("--out", "Folder; default: report-RUN.")
@shared_option("--load", "Python file whose reporters can be used by name.")
@common
def report(
    session: Session,
    ref: str,
    formats: str | None,
    artifacts: bool,
    out: Path | None,
    load: tuple[str, ...],
) -> None:
    """Write RUN as documents: one self-contained HTML file, Markdown, JSON, CSV, PNG charts, JUnit."""
    from assay.pipeline import report as reporting
    from assay.plugin import lookup
    from assay.report.documents.result import write_artifacts

    for file in load:
        lookup.load_file(Path(file))
    # With --artifacts alone no document is written.
    listed = formats if formats is not None else "" if artifacts else "html"
    names = [name.strip() for name in listed.split(",") if name.strip()]
    if not names and not artifacts:
        raise click.UsageError("--format is empty.")
    with session.store() as store:
        found = reporting.report_of(store, ref)
        folder = out or Path(f"report-{found.run.id}")
        files = reporting.write_reports(found, names, folder)
        if artifacts:
            written_artifacts = write_artifacts(found, folder / "artifacts" if names else folder)
            if not written_artifacts:
                session.say(f"Run '{found.run.id}' has no artifacts.")
            files += written_artifacts
    if session.is_json:
        session.emit({"run_id": found.run.id, "files": list(map(str, files))})
        return
    # The names of files are the result here, one a line on standard output, so that a script can read them.
    for written in files:
        echo(str(written))
    pages = [written for written in files if written.suffix == ".html"]
    session.next(f"open {quote_word(str(pages[0]))} in a browser" if pages else f"assay show {found.run.id}")
