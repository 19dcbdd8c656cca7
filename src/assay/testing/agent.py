"""The contract of agents: pytest collects its tests in every class that extends it.

The agent is really asked, through the same pool as in a run, so a test of an agent behind a server needs that server or a
cassette.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import ClassVar

from assay.model import AgentUse, Answer, Request
from assay.plugin import lookup
from assay.plugin.agent_pool import AgentPool


class AgentContract:
    """What every agent must do. Name its type, the options to make it with, and an input that it can answer."""

    agent: ClassVar[str]
    options: ClassVar[Mapping[str, object]] = {}
    input: ClassVar[object] = "Hello"

    def test_it_declares_whether_it_is_simulated_and_whether_it_is_free(self) -> None:
        member = lookup.find("agents", self.agent)
        assert isinstance(member.is_simulated, bool)
        assert isinstance(member.is_free, bool)

    def test_it_answers_one_request_after_another(self) -> None:
        with contextlib.closing(AgentPool()) as pool:
            agent = pool.open(self._use())
            answers = [pool.wait(agent.answer(Request(case, self.input))) for case in ("first", "second")]
        assert all(isinstance(answer, Answer) for answer in answers)

    def test_it_can_be_opened_again_after_it_was_closed(self) -> None:
        for _ in "12":
            with contextlib.closing(AgentPool()) as pool:
                assert isinstance(
                    pool.wait(pool.open(self._use()).answer(Request("case", self.input))), Answer
                )

    def test_it_gives_its_version_as_text_once_it_is_open(self) -> None:
        with contextlib.closing(AgentPool()) as pool:
            assert isinstance(pool.open(self._use()).found_version(), str)

    def _use(self) -> AgentUse:
        return AgentUse("sample", self.agent, options=dict(self.options))
