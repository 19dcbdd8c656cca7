"""Steps are carried out in the sandbox; what goes wrong is recorded with a code, the rest goes on, and a run resumes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.workflow.plans import make_run, statuses, step

from assay.builtin.experiments.workflow_run import Interruption, StepStatus, compare_resumed

DONE, FAILED, SKIPPED = StepStatus.DONE, StepStatus.FAILED, StepStatus.SKIPPED
pytestmark = pytest.mark.usefixtures("bubblewrap")

FAULTY = {
    "hangs": ("sleep 30", "seconds"),
    "forks without end": ("while true; do sleep 9 & done", "processes"),
    "takes all memory": ("exec python3 -c 'import time; x = bytearray(400 << 20); time.sleep(9)'", "memory"),
    "deletes its input": ("rm in.txt", "deleted_input"),
    "writes outside of its folder": ("echo x > /usr/new", "outside"),
    "opens a connection": ("exec 3<>/dev/tcp/127.0.0.1/80", "network"),
    "uses a forbidden tool": ("env nice curl -s http://127.0.0.1", "forbidden"),
    "uses a tool that does not exist": ("no-such-tool in.txt", "unknown_tool"),
    "fails": ("exit 3", "exit"),
    "does not make its output": ("true > other.txt", "missing_output"),
    "makes a link that leads out of the folder": ("ln -s /etc/hostname out.txt", "missing_output"),
    "makes a pipe that would block a reader": ("mkfifo out.txt", "missing_output"),
}


@pytest.mark.parametrize(("command", "code"), FAULTY.values(), ids=FAULTY.keys())
def test_a_faulty_step_is_recorded_and_the_rest_goes_on(tmp_path: Path, command: str, code: str) -> None:
    run = make_run(
        tmp_path,
        step("bad", command, inputs=["in.txt"], outputs=["out.txt"]),
        step("after", "echo x", "bad"),
        step("later", "echo x", "after"),
        step("other", "echo fine > fine.txt", outputs=["fine.txt"]),
        seconds=1.0 if code == "seconds" else 20.0,
        forbidden=frozenset({"curl"}),
    )
    run.run()

    assert statuses(run)["bad"] == (FAILED, code)
    assert statuses(run)["after"] == statuses(run)["later"] == (SKIPPED, "dependency")
    assert statuses(run)["other"] == (DONE, "")
    assert run.results["bad"].message


def test_a_step_whose_input_is_missing_is_not_begun(tmp_path: Path) -> None:
    run = make_run(tmp_path, step("a", "touch x", inputs=["none.txt"]))
    run.run()

    assert statuses(run) == {"a": (FAILED, "missing_input")}
    assert not (run.folder / "x").exists()


def test_an_error_within_a_pipe_is_an_indicator_though_the_step_ends_well(tmp_path: Path) -> None:
    run = make_run(tmp_path, step("a", "cat none.txt | sort"), step("b", "echo error-free"))
    run.run()

    assert [run.results[name].has_error_text for name in "ab"] == [True, False]
    assert run.count(DONE) == 2


def test_what_a_step_tried_is_known_though_it_ended_well(tmp_path: Path) -> None:
    run = make_run(
        tmp_path, step("a", "exec 3<>/dev/tcp/127.0.0.1/9; true"), step("b", "echo x > /usr/x; true")
    )
    run.run()

    assert [(run.results[name].status, run.results[name].tried) for name in "ab"] == [
        (DONE, "network"),
        (DONE, "outside"),
    ]


CHAIN = (
    step("one", "echo 1 > 1.txt", outputs=["1.txt"]),
    step("two", "cat 1.txt > 2.txt", "one", inputs=["1.txt"], outputs=["2.txt"]),
    step(
        "three",
        "echo half > 3.txt; ls again || { touch again; sleep 30; }; echo whole >> 3.txt",
        "two",
        outputs=["3.txt"],
    ),
    step("four", "cat 3.txt > 4.txt", "three", inputs=["3.txt"], outputs=["4.txt"]),
)


@pytest.mark.parametrize(
    ("rule", "wrongly_skipped", "text"), [("checkpoint", 0, "half\nwhole\n"), ("outputs", 1, "half\n")]
)
def test_a_resumed_run_skips_what_is_complete_and_no_more(
    tmp_path: Path, rule: str, wrongly_skipped: int, text: str
) -> None:
    broken = make_run(tmp_path, *CHAIN, resume=rule)
    broken.run(Interruption("three", 1.5))
    resumed = make_run(tmp_path, *CHAIN, resume=rule)
    resumed.run()
    figures = compare_resumed(broken.events, resumed)

    assert (figures.completed, figures.wasted, figures.wrongly_skipped) == (2, 0, wrongly_skipped)
    assert figures.detected == figures.skipped == 2 + wrongly_skipped
    assert figures.is_finished
    assert (resumed.folder / "4.txt").read_text() == text


def test_steps_without_outputs_cannot_be_detected_and_are_wasted(tmp_path: Path) -> None:
    chain = (step("one", "echo 1 > 1.txt"), step("two", "sleep 0.2", "one"))
    broken = make_run(tmp_path, *chain)
    broken.run(Interruption("two", 0.05))
    resumed = make_run(tmp_path, *chain)
    resumed.run()

    figures = compare_resumed(broken.events, resumed)
    assert (figures.completed, figures.detected, figures.wasted) == (1, 0, 1)


def test_a_complete_step_whose_output_was_changed_is_done_again_with_all_that_follows(tmp_path: Path) -> None:
    first = make_run(tmp_path, *CHAIN[:2])
    first.run()
    (first.folder / "1.txt").write_text("changed")
    again = make_run(tmp_path, *CHAIN[:2])
    again.run()

    assert statuses(again) == {"one": (DONE, ""), "two": (DONE, "")}
    assert (again.folder / "2.txt").read_text() == "1\n"


def test_events_tell_the_whole_story_in_order(tmp_path: Path) -> None:
    run = make_run(tmp_path, step("a", "true"), step("b", "false", "a"), step("c", "true", "b"))
    run.run()

    told = [(event["event"], event["step"]) for event in run.events]
    assert told == [
        ("step_started", "a"), ("step_done", "a"), ("step_started", "b"), ("step_failed", "b"), ("step_skipped", "c"),
    ]  # fmt: skip
    assert [event["at"] for event in run.events] == sorted(event["at"] for event in run.events)
