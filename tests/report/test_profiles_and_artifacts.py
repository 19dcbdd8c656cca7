"""What profilers found is in every report, and what executions left can be written back to files."""

from __future__ import annotations

import pstats
from pathlib import Path

import pytest
from tests.command import AssayInline

CODE = """
from assay import Experiment, register_experiment
from assay.plugin.instrument import File, Reading
from assay.plugin.lookup import register

KEPT = []

def slowest():
    total = 0
    for number in range(200_000):
        total += number
    return total

@register_experiment("hog")
class Hog(Experiment):
    def execute_once(self, context):
        KEPT.append(bytearray(3_000_000))
        return {"total": slowest()}

class Sneaky:
    slows = False
    metrics = {}

    def start(self, context):
        return None

    def stop(self, state):
        return Reading({}, (File("../../evil.txt", "text", b"out"), File("/etc/evil", "text", b"abs")))

register("instruments", "sneaky", Sneaky)
"""


@pytest.fixture
def assay(assay_inline: AssayInline) -> AssayInline:
    assay_inline.write("code.py", CODE)
    assay_inline.write(
        "spec.yaml", "experiment: hog\nload: code.py\ninstrumentation: [memory, cprofile, sneaky]\n"
    )
    assert assay_inline("run", "spec.yaml", "-q").code == 0
    return assay_inline


def test_profiles_are_in_show_markdown_and_html(assay: AssayInline) -> None:
    assay("report", "last", "--format", "md,html", "--out", "out")
    pages = {
        "show": assay("show", "last").out,
        "md": (assay.folder / "out" / "report.md").read_text().replace("\\", ""),
        "html": (assay.folder / "out" / "report.html").read_text(),
    }
    for name, page in pages.items():
        for told in (
            "Functions by their own time",
            "slowest (",
            "Lines by memory",
            "code.py:16",
            "2.86 MiB",
        ):
            assert told in page, (name, told)
        assert "traced_peak_bytes" in page, name


def test_tables_of_profiles_leave_the_harness_out(assay: AssayInline) -> None:
    assay("report", "last", "--artifacts", "--format", "md", "--out", "out")
    assert "assay/execute/" in next((assay.folder / "out").rglob("memory.json")).read_text()
    assert "assay/execute/" not in assay("show", "last").out
    assert "assay/execute/" not in (assay.folder / "out" / "report.md").read_text()


def test_artifacts_are_written_back_to_files_and_listed(assay: AssayInline) -> None:
    done = assay("report", "last", "--artifacts", "--out", "files", "--json").json
    files = [Path(file) for file in done["files"]]
    assert {file.name for file in files} >= {"cprofile.prof", "cprofile_summary.json", "memory.json"}
    assert all((assay.folder / file).is_file() for file in files)
    profile = next(file for file in files if file.name == "cprofile.prof")
    assert any("slowest" in name for _, _, name in pstats.Stats(str(assay.folder / profile)).stats)  # type: ignore[attr-defined]


def test_names_of_artifacts_lead_out_of_no_folder(assay: AssayInline) -> None:
    written = assay("report", "last", "--artifacts", "--out", "a/b/files", "--json").json["files"]
    inside = (assay.folder / "a" / "b" / "files").resolve()
    assert all((assay.folder / file).resolve().is_relative_to(inside) for file in written)
    assert sorted(
        Path(file).read_bytes() for file in map(assay.folder.joinpath, written) if "evil" in file.name
    ) == [
        b"abs",
        b"out",
    ]
    assert not list(assay.folder.glob("evil*"))
    assert not list((assay.folder / "a").glob("evil*"))


def test_artifacts_and_documents_are_written_together_when_both_are_asked_for(assay: AssayInline) -> None:
    files = assay("report", "last", "--artifacts", "--format", "json", "--out", "both", "--json").json[
        "files"
    ]
    assert any(file.endswith("artifacts/hog/memory.json") for file in files)
    assert any(Path(file).parent.name == "both" for file in files)
