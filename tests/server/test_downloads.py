"""Reports and artifacts to download: the documents of the command, and nothing that a browser would run."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.command import Assay
from tests.past import Past
from tests.server.service import Service, serving

from assay.model import Artifact, Batch, RunState
from assay.store.store import Store

HOSTILE = '../../etc/"passwd\r\nX-Evil: 1\u202e.html'
"""What an agent may call a file."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Results with artifacts and with a case whose output is a formula."""
    folder = tmp_path_factory.mktemp("hostile")
    with Store.open(f"sqlite:///{folder / '.assay' / 'assay.db'}") as store:
        past = Past(store, agent="=cmd|' /C calc'!A0")
        run = past.run(failed=1)
        store.reopen(run.id, "me")
        files = [
            Artifact(0, HOSTILE, "text/html", b"<script>alert(1)</script>"),
            Artifact(0, "b", "x", b"\x00\xff"),
        ]
        store.add(run.id, Batch(artifacts=tuple(files)))
        store.finish(run.id, RunState.COMPLETED, run.started)
    with serving(folder) as service:
        yield service


@pytest.mark.parametrize(
    ("format", "kind"),
    [("html", "text/html"), ("md", "text/markdown"), ("json", "application/json"), ("csv", "text/csv"),
     ("junit", "application/xml")],
)  # fmt: skip
def test_a_report_is_that_of_the_command(
    server: Service, played: Path, tmp_path: Path, format: str, kind: str
) -> None:
    answer = server.get("/runs/last/report", format=format)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith(kind)
    assert answer.headers["content-disposition"].startswith("attachment; ")
    assert answer.headers["x-content-type-options"] == "nosniff"
    run_id = server.get("/runs").document["runs"][0]["id"]
    assert f'filename="{run_id}-' in answer.headers["content-disposition"]
    Assay(played)("report", run_id, "--format", format, "--out", str(tmp_path))
    [written] = [file.read_bytes() for file in tmp_path.iterdir()]
    # What is told about when it was written differs.
    assert len(answer.body) == pytest.approx(len(written), abs=100)
    if format == "json":
        assert json.loads(answer.body)["run_id"] == run_id
    if format == "junit":
        assert ElementTree.fromstring(answer.body).tag == "testsuites"


def test_a_report_has_no_formula_for_a_spreadsheet(hostile: Service) -> None:
    rows = list(csv.DictReader(io.StringIO(hostile.get("/runs/last/report", format="csv").body.decode())))
    assert len(rows) == 90
    assert {row["agent"] for row in rows} == {"'=cmd|' /C calc'!A0"}
    assert not [cell for row in rows for cell in row.values() if cell and cell[0] in "=+@"]


def test_what_is_no_report_is_refused(server: Service) -> None:
    assert server.get("/runs/nothing/report").status == 404
    assert server.get("/runs/last/report", format="png").status == 422
    assert server.get("/runs/last/report", format="../json").status == 422


def test_reports_leave_no_files_behind(tmp_path: Path, played: Path) -> None:
    with serving(played, TMPDIR=str(tmp_path)) as service:
        for format in ("html", "csv"):
            assert service.get("/runs/last/report", format=format).status == 200
        assert service.get("/runs/nothing/report").status == 404
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("assay-report")] == []


def test_an_artifact_is_saved_under_a_harmless_name(hostile: Service) -> None:
    [trial] = hostile.get("/trials").document["results"]
    listed = hostile.get(f"/trials/{trial['id']}/artifacts").document["artifacts"]
    assert [(one["number"], one["type"], one["bytes"]) for one in listed] == [
        (1, "text/html", 25),
        (2, "x", 2),
    ]
    answer = hostile.get(f"/trials/{trial['id']}/artifacts/1")
    assert answer.body == b"<script>alert(1)</script>"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "x-evil" not in {name.lower() for name in answer.headers}
    disposition = answer.headers["content-disposition"]
    assert re.fullmatch(r"attachment; filename=\"[\w.-]+\"; filename\*=UTF-8''[\w.%-]+", disposition)
    assert ".." not in disposition
    assert "/" not in disposition
    assert hostile.get(f"/trials/{trial['id']}/artifacts/2").body == b"\x00\xff"


def test_there_is_no_way_to_other_files(hostile: Service) -> None:
    [trial] = hostile.get("/trials").document["results"]
    path = f"/trials/{trial['id']}/artifacts"
    assert hostile.get(f"{path}/3").status == 404
    assert hostile.get(f"{path}/0").status == 422
    for wrong in ("..%2f..%2fetc%2fpasswd", "-1", "b"):
        assert hostile.request("GET", f"{path}/{wrong}").status in (404, 422)
    assert hostile.get("/trials/999/artifacts").status == 404
    assert hostile.get("/trials/999/artifacts/1").status == 404
