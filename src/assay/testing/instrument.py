"""The contract of instruments: they measure what they declare, as finite numbers, one execution after another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from assay.model import Metric
from assay.plugin import lookup
from assay.plugin.experiment import ExperimentContext
from assay.plugin.instrument import NotMeasurable, Reading


class InstrumentContract:
    """What every instrument must do. Name it, with the options to make it with.

    Where this machine has nothing to measure for it, its tests are skipped.
    """

    instrument: ClassVar[str]
    options: ClassVar[Mapping[str, object]] = {}

    def test_it_says_whether_it_slows_its_subject_and_what_it_measures(self) -> None:
        member = lookup.find("instruments", self.instrument)
        assert isinstance(member.slows, bool)
        assert all(isinstance(metric, Metric) for metric in member.metrics.values())
        assert all(metric.name == name for name, metric in member.metrics.items())

    def test_it_measures_finite_numbers_that_it_has_declared(self, tmp_path: Path) -> None:
        instrument = self._build_instrument()
        reading = instrument.stop(instrument.start(_context(tmp_path)))
        assert isinstance(reading, Reading)
        assert set(reading.measurements) <= set(instrument.metrics)
        assert all(math.isfinite(value) for value in reading.measurements.values())

    def test_its_files_have_plain_names(self, tmp_path: Path) -> None:
        instrument = self._build_instrument()
        for file in instrument.stop(instrument.start(_context(tmp_path))).files:
            assert file.name == Path(file.name).name
            assert isinstance(file.content, bytes)

    def test_it_watches_one_execution_after_another(self, tmp_path: Path) -> None:
        instrument = self._build_instrument()
        first, second = (
            set(instrument.stop(instrument.start(_context(tmp_path))).measurements) for _ in "12"
        )
        assert first == second

    def _build_instrument(self) -> Any:
        import pytest

        try:
            return lookup.find("instruments", self.instrument)(**self.options)
        except NotMeasurable as reason:
            pytest.skip(str(reason))


def _context(folder: Path) -> ExperimentContext:
    return ExperimentContext("sample", folder, seed=1, iteration_index=0, phase="measured")
