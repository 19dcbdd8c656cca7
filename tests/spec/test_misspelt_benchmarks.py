"""A suite whose `benchmarks` is misspelt is told so, not that there is no suite of its name."""

from __future__ import annotations

import pytest
from tests.wording import Wording


@pytest.mark.parametrize("command", ["run", "validate"])
def test_misspelt_benchmarks_are_named_with_their_line(assay_inline, wording: Wording, command):
    assay_inline.write("suite.yaml", "suite: desk\nbenchmrks: []\nagents: [nop]\n")
    refusal = assay_inline(command, "suite.yaml").refusal
    assert "suite.yaml:2: benchmrks" in refusal
    assert "'benchmarks'" in refusal
    wording(refusal, near="suite.yaml:2")


def test_processes_of_a_suite_are_refused(assay_inline):
    suite = (
        "suite: desk\nagents: [nop]\nbenchmarks: [{id: b, cases: [{input: a, expected: a}], scorer: exact}]\n"
    )
    assay_inline.write("suite.yaml", suite)
    assert "--processes" in assay_inline("run", "suite.yaml", "--processes", "2").refusal
