"""A system clock that is set while a run goes on does not change how long the run took."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.command import AssayInline

from assay.plugin.steady_clock import SteadyClock
from assay.report.figures import compute_run_seconds
from assay.testing.samples import sample_report

JUMPS = [timedelta(days=-1), timedelta(days=1)]


class _Jumping(datetime):
    """Each reading lies one jump further than the one before."""

    jump = timedelta()
    readings = 0

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        cls.readings += 1
        return datetime(2026, 5, 4, tzinfo=UTC) + cls.readings * cls.jump


@pytest.mark.parametrize("jump", JUMPS)
def test_a_run_lasts_as_long_as_it_took(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch, jump: timedelta
) -> None:
    monkeypatch.setattr(_Jumping, "jump", jump)
    for module in ("assay.pipeline.lifecycle", "assay.plugin.steady_clock"):
        monkeypatch.setattr(f"{module}.datetime", _Jumping)
    began = time.monotonic()

    done = assay_inline("run", "noop", "--isolation", "inline", "--json")

    took = time.monotonic() - began
    document = done.json
    started, ended = (datetime.fromisoformat(document[name]) for name in ("started", "ended"))
    assert 0 < (ended - started).total_seconds() <= took


@pytest.mark.parametrize("jump", JUMPS)
def test_samples_follow_each_other_by_the_time_between_them(
    monkeypatch: pytest.MonkeyPatch, jump: timedelta
) -> None:
    monkeypatch.setattr(_Jumping, "jump", jump)
    monkeypatch.setattr("assay.plugin.steady_clock.datetime", _Jumping)
    began = time.monotonic()
    clock = SteadyClock()

    first, second = clock.now(), clock.now()

    assert timedelta() <= second - first <= timedelta(seconds=time.monotonic() - began)


def test_a_run_that_ended_before_it_began_has_no_length() -> None:
    report = sample_report()
    run = replace(report.run, ended=report.run.started - timedelta(hours=1))

    assert compute_run_seconds(replace(report, run=run)) is None
