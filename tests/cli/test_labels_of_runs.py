"""A run can be given a label, which lists and reports show."""

from __future__ import annotations

import json

import pytest

import assay

LABEL = "before <the> cache"


@pytest.fixture
def labelled(assay_inline):
    assay_inline("run", "noop", "--label", LABEL, "--json")
    return assay_inline


def test_lists_and_documents_show_the_label_of_a_run(labelled):
    labelled("run", "noop", "--json")

    assert [run["label"] for run in labelled("runs", "list", "--json").json] == ["", LABEL]
    assert "(before <the>" in labelled("runs", "list").out
    older = labelled("runs", "list", "--json").json[1]["id"]
    assert labelled("show", older, "--json").json["label"] == LABEL
    assert LABEL in labelled("show", older).out


def test_reports_show_the_label_of_a_run(labelled):
    labelled("report", "last", "--format", "html,md,json", "--out", "out")

    texts = {file.suffix: file.read_text() for file in (labelled.folder / "out").rglob("*.*")}
    assert "before &lt;the&gt; cache" in texts[".html"]
    assert "cache" in texts[".md"]
    assert json.loads(texts[".json"])["label"] == LABEL


def test_a_run_from_python_takes_a_label(assay_inline, monkeypatch):
    monkeypatch.chdir(assay_inline.folder)
    assert assay.run("noop", label="nightly").to_dict()["label"] == "nightly"
    with pytest.raises(assay.PlanError, match="label"):
        assay.run("noop", label=3)  # type: ignore[arg-type]
