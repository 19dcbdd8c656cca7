"""P95, P99 and mean scores have intervals in every document that shows them at length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from assay.model import Report, TrialReport
from assay.report.documents.json import Json
from assay.report.documents.result import read_result, run_document
from assay.report.pages.html import Html
from assay.report.pages.markdown import Markdown

Make = Callable[..., Report]


@pytest.fixture
def report(make_report: Make, make_trial: Callable[..., TrialReport]) -> Report:
    trial = make_trial(1, "parse", 0.1, processes=10, repetitions=30)
    told = replace(
        trial.estimates[0],
        p95=0.123,
        tails={"p95": (0.119, 0.128)},
        insufficient=("p99",),
        mean=0.101,
        mean_low=0.0951,
        mean_high=0.107,
    )
    return make_report(replace(trial, estimates=(told,)))


def test_the_result_has_them_and_gives_them_back(report: Report, tmp_path: Path) -> None:
    entry = next(iter(run_document(report)["trials"][0]["metrics"].values()))
    assert entry["tails"] == {"p95": [0.119, 0.128]}
    assert entry["mean_interval"] == [0.0951, 0.107]
    (file,) = Json().write(report, tmp_path)
    back = read_result(file).trials[0].estimates[0]
    assert dict(back.tails) == {"p95": (0.119, 0.128)}
    assert (back.mean_low, back.mean_high) == (0.0951, 0.107)


def test_pages_show_them_beside_the_figure(report: Report, tmp_path: Path) -> None:
    pages = [*Markdown().write(report, tmp_path), *Html().write(report, tmp_path)]
    texts = [file.read_text(encoding="utf-8").replace("\\", "") for file in pages]
    for text in texts:
        assert "[119, 128]" in text
        assert "[95.1, 107]" in text
