"""What crosses the border between processes arrives as it was."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.execute.wire import MalformedLine, decode_batches, decode_order, encode_batch, encode_order
from assay.model import (
    AgentUse,
    Artifact,
    Batch,
    Case,
    Execution,
    ExecutionRange,
    InstrumentUse,
    Isolation,
    Iterations,
    Job,
    Limits,
    Phase,
    Placement,
    ResourceRequest,
    ScorerUse,
    Status,
    Turn,
    Until,
)

numbers = st.integers(0, 10**6)
finite = st.floats(allow_nan=False, allow_infinity=False)
text = st.text(max_size=20)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
optional_text = st.none() | text

executions = st.builds(
    Execution,
    trial=numbers,
    process=numbers,
    phase=st.sampled_from(Phase),
    repetition=numbers,
    status=st.sampled_from(Status),
    started=finite,
    measurements=st.dictionaries(text, finite, max_size=3),
    loops=numbers,
    case=text,
    output=plain,
    applied=st.none() | st.dictionaries(text, plain, max_size=3),
    error=optional_text,
    log=optional_text,
    detail=st.none() | st.dictionaries(text, plain, max_size=2),
)
batches = st.builds(
    Batch,
    executions=st.lists(executions, max_size=3).map(tuple),
    artifacts=st.lists(st.builds(Artifact, numbers, text, text, st.binary(max_size=50)), max_size=2).map(
        tuple
    ),
    stopped=st.dictionaries(numbers, text, max_size=2),
    costs=st.dictionaries(text, finite, max_size=2),
    unmeasured=st.dictionaries(text, text, max_size=2),
    settled=st.lists(st.tuples(numbers, numbers), max_size=2).map(tuple),
    placements=st.lists(st.builds(Placement, numbers, numbers, text), max_size=2).map(tuple),
    nodes=st.dictionaries(text, st.dictionaries(text, plain, max_size=2), max_size=2),
)
options = st.dictionaries(text, plain, max_size=2)
scorers = st.lists(st.builds(ScorerUse, text, finite, options, text), max_size=2).map(tuple)
cases = st.builds(
    Case,
    id=text,
    input=plain,
    expected=plain,
    turns=st.lists(st.builds(Turn, plain, plain, scorers), max_size=2).map(tuple),
    tools=st.lists(options, max_size=2).map(tuple),
    files=st.dictionaries(text, text, max_size=2),
    tags=st.lists(text, max_size=2).map(tuple),
    metadata=options,
)
jobs = st.builds(
    Job,
    trial=numbers,
    process=numbers,
    experiment=text,
    params=st.dictionaries(text, plain, max_size=3),
    stretches=st.lists(
        st.builds(ExecutionRange, st.sampled_from(["warmup", "measured"]), numbers, numbers, st.booleans()),
        max_size=3,
    ).map(tuple),
    iterations=st.builds(
        Iterations,
        numbers,
        numbers,
        st.none() | st.builds(Until, finite, numbers, numbers, text),
        st.none() | numbers,
    ),
    instruments=st.lists(
        st.builds(InstrumentUse, text, st.dictionaries(text, plain, max_size=2)), max_size=2
    ).map(tuple),
    isolation=st.sampled_from(Isolation),
    limits=st.builds(Limits, *[st.none() | finite] * 4),
    seed=numbers,
    load=st.lists(text, max_size=2).map(tuple),
    run_id=text,
    run_dir=text,
    name=text,
    agent=st.none()
    | st.builds(AgentUse, text, text, options, text, st.none() | st.dictionaries(text, finite), text),
    cases=st.lists(cases, max_size=2).map(tuple),
    scorers=scorers,
    done=st.frozensets(numbers, max_size=3),
    concurrency=numbers,
    resources=st.none()
    | st.builds(ResourceRequest, finite, finite, st.dictionaries(text, finite, max_size=2)),
)


@given(jobs)
def test_a_job_arrives_as_it_was(job: Job) -> None:
    assert decode_order(b"".join(encode_order(job, "secret"))) == (job, "secret")


@given(jobs)
def test_a_param_that_json_has_no_word_for_arrives_as_text(job: Job) -> None:
    dated = replace(job, params={"day": date(2026, 1, 2)})

    arrived, _ = decode_order(b"".join(encode_order(dated, "")))

    assert arrived.params == {"day": "2026-01-02"}


def whole(sent: list[Batch]) -> tuple[object, ...]:
    """All that a number of batches hold, in order, however they are parted."""
    return (
        [execution for batch in sent for execution in batch.executions],
        [artifact for batch in sent for artifact in batch.artifacts],
        [item for batch in sent for item in batch.stopped.items()],
        [item for batch in sent for item in batch.costs.items()],
        [item for batch in sent for item in batch.unmeasured.items()],
        [pair for batch in sent for pair in batch.settled],
        [placement for batch in sent for placement in batch.placements],
        [item for batch in sent for item in batch.nodes.items()],
    )


@given(st.lists(batches, max_size=4))
def test_batches_arrive_as_they_were_and_in_their_order(sent: list[Batch]) -> None:
    lines = b"".join(map(encode_batch, sent)).split(b"\n")

    assert lines.pop() == b""
    assert whole(decode_batches(lines)) == whole(sent)


@given(st.binary(max_size=30).filter(lambda line: b"\n" not in line))
def test_a_line_that_nobody_of_ours_wrote_is_found_out(line: bytes) -> None:
    with pytest.raises(MalformedLine):
        decode_batches([line or b"[1]"])


@pytest.mark.parametrize("line", [b"[]", b"[1,2,3]", b"{}", b"[" * 100_000, b"1", b'"text"', b"null"])
def test_json_that_is_no_batch_is_found_out(line: bytes) -> None:
    with pytest.raises(MalformedLine):
        decode_batches([line])
