"""The contract of scenarios: an agent that keeps up gets a high score, one that answers nothing gets none.

The benches answer by rule and put no load on anything (see `bench`), so the tests take no time.
"""

from __future__ import annotations

from typing import Any, ClassVar

from assay.analysis.load.stress import score_of
from assay.model.stress import ScenarioFinding
from assay.plugin import lookup
from assay.testing.bench import SampleBench


class ScenarioContract:
    """What every scenario must do. Name it; it is run in small size on benches that answer by rule, without any load."""

    scenario: ClassVar[str]

    def test_it_is_made_in_full_size_and_in_small(self) -> None:
        member = lookup.find("scenarios", self.scenario)
        assert isinstance(member.name, str)
        assert isinstance(member(), member)
        assert isinstance(member.quick(), member)

    def test_it_says_why_it_does_not_apply_to_an_agent_or_nothing(self) -> None:
        assert isinstance(self._quick().not_for(SampleBench()), str)

    def test_an_agent_that_keeps_up_is_not_broken(self) -> None:
        finding = self._run(SampleBench())
        assert not finding.is_broken
        assert score_of(finding).value > 0.9

    def test_an_agent_that_answers_nothing_under_load_gets_no_score_to_speak_of(self) -> None:
        assert score_of(self._run(SampleBench(answers=0.0))).value < 0.1

    def _quick(self) -> Any:
        return lookup.find("scenarios", self.scenario).quick()

    def _run(self, bench: SampleBench) -> ScenarioFinding:
        scenario = self._quick()
        finding = scenario.run(bench)
        assert isinstance(finding, ScenarioFinding)
        assert finding.scenario == scenario.name
        assert 0 <= finding.good <= finding.offered
        assert 0 <= finding.load_borne <= finding.load_asked
        return finding
