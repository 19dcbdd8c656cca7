"""Reports and artifacts to download. Nothing of them is shown by a browser: names and contents come from agents."""

from __future__ import annotations

from pathlib import Path as FilePath
from shutil import rmtree
from tempfile import mkdtemp
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Path, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel
from starlette.background import BackgroundTask

from assay.errors import LookupFailed
from assay.model import Artifact
from assay.model.redaction import redact
from assay.pipeline.report import report_of, write_reports
from assay.plugin.file_names import safe_name
from assay.server.access import READ
from assay.server.answers import describe_errors, describe_route, respond
from assay.server.context import Context
from assay.server.parameters import Name
from assay.server.results import TrialId
from assay.store.results import ResultFilter

router = APIRouter(tags=["results"])

_TYPES = {
    "html": "text/html; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "junit": "application/xml",
}
Format = Literal["html", "md", "json", "csv", "junit"]


@router.get(
    "/runs/{run_id}/report",
    openapi_extra=READ,
    response_class=Response,
    responses={
        200: {
            "content": {kind.partition(";")[0]: {"schema": {"type": "string"}} for kind in _TYPES.values()}
        },
        **describe_errors(404),
    },
    summary="The report of a run, to download",
)
def download_report(context: Context, run_id: Name, format: Format = "html") -> Response:
    """The document that `assay report` writes. In CSV, texts that a spreadsheet would take for formulas are quoted."""
    report = report_of(context.store, run_id)
    folder = FilePath(mkdtemp(prefix="assay-report-"))
    try:
        file = write_reports(report, [format], folder)[0]
    except BaseException:
        rmtree(folder)
        raise
    return FileResponse(
        file,
        media_type=_TYPES[format],
        headers={"content-disposition": _attachment(f"{report.run.id}-{file.name}")},
        background=BackgroundTask(rmtree, folder),
    )


class ArtifactRow(BaseModel):
    """A file that executions left: a profile, samples, remarks."""

    number: int
    name: str
    type: str
    bytes: int


class ArtifactList(BaseModel):
    artifacts: list[ArtifactRow]


@router.get("/trials/{trial_id}/artifacts", **describe_route(READ, ArtifactList, "Artifacts of a trial", 404))
def list_artifacts(context: Context, trial_id: TrialId) -> Response:
    """Files that its executions left, in the order of storing."""
    rows = [
        {"number": number, "name": artifact.name, "type": artifact.type, "bytes": len(artifact.content)}
        for number, artifact in enumerate(_read_artifacts(context, trial_id), 1)
    ]
    return respond({"artifacts": rows})


@router.get(
    "/trials/{trial_id}/artifacts/{number}",
    openapi_extra=READ,
    response_class=Response,
    responses={
        200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
        **describe_errors(404),
    },
    summary="One artifact, to download",
)
def download_artifact(
    context: Context, trial_id: TrialId, number: Annotated[int, Path(ge=1, le=2**31 - 1)]
) -> Response:
    """By its number in the list; what it is called decides nothing."""
    found = _read_artifacts(context, trial_id)
    if number > len(found):
        raise LookupFailed(f"Trial {trial_id} has {len(found)} artifacts, and none with the number {number}.")
    artifact = found[number - 1]
    return Response(
        redact(artifact.content),
        media_type="application/octet-stream",
        headers={"content-disposition": _attachment(artifact.name)},
    )


def _read_artifacts(context: Context, trial_id: int) -> tuple[Artifact, ...]:
    if not context.store.results(ResultFilter(trial=trial_id)):
        raise LookupFailed(f"There is no trial {trial_id}.")
    return context.store.artifacts(trial_id)


def _attachment(name: str) -> str:
    """A header that has a browser save the answer, under a name that leads to no other folder."""
    safe = safe_name(name)
    plain = safe.encode("ascii", "ignore").decode() or "file"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(safe)}"
