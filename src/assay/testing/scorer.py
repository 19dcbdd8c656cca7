"""The contract of scorers: correct outputs get 1, wrong ones less, missing ones raise nothing, and scores repeat."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import ClassVar

from assay.model import Case, ScorerUse
from assay.plugin.agent_pool import AgentPool
from assay.plugin.scorer import Judged, Judgement
from assay.plugin.scorers import make_scorer


class ScorerContract:
    """What every scorer must do. Name it, the options to make it with, a case, and an output that is right and one that is wrong."""

    scorer: ClassVar[str]
    options: ClassVar[Mapping[str, object]] = {}
    case: ClassVar[Case] = Case("sample", "What is the capital of France?", "Paris")
    right: ClassVar[object] = "Paris"
    """An output that gets the full score for this case."""
    wrong: ClassVar[object] = "London"
    """An output that gets less, but is not missing."""

    def test_a_right_output_gets_the_full_score(self) -> None:
        assert self._score(self.right).value == 1.0

    def test_a_wrong_output_gets_less(self) -> None:
        value = self._score(self.wrong).value
        assert value is not None
        assert 0.0 <= value < 1.0

    def test_a_missing_output_gets_no_full_score_and_raises_nothing(self) -> None:
        value = self._score(None).value
        assert value is None or 0.0 <= value < 1.0

    def test_the_same_output_gets_the_same_score_again(self) -> None:
        assert self._score(self.wrong).value == self._score(self.wrong).value

    def _score(self, output: object) -> Judgement:
        with contextlib.closing(AgentPool()) as pool:
            scorer = make_scorer(ScorerUse(self.scorer, options=dict(self.options)), pool)
            judgement = pool.wait(scorer.score(Judged(output, self.case.expected, self.case)))
        assert isinstance(judgement, Judgement)
        return judgement
