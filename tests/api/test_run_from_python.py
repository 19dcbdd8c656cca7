"""`assay.run` takes what the command takes, and Python objects."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.command import AssayInline

import assay

CASES = [{"input": "1+1", "expected": "2"}, {"input": "2+3", "expected": "6"}]
LIB = """\
import os, time
def add(question): return str(eval(question))
def process(question): return str(os.getpid())
def slow(question): time.sleep(30)
def half(output, expected): return 0.5
"""


def add(question: str) -> str:
    return str(eval(question))


def scores(result: assay.RunResult) -> dict[str, float]:
    """The mean score of each agent."""
    frame = result.to_pandas()
    return dict(frame[frame["phase"] == "measured"].groupby("agent")["score"].mean())


def test_agents_cases_and_repetitions_of_a_suite_are_chosen(project: Path) -> None:
    result = assay.run("suite.yaml", agents=["right"], cases=["one", "two"], repetitions=2)

    assert [(trial.stored.trial.agent.name, trial.counts) for trial in result.trials] == [
        ("right", {"ok": 4})
    ]
    assert result.status == "completed"


def test_limit_and_tags_choose_cases_as_on_the_command_line(project: Path) -> None:
    assert assay.run(Path("suite.yaml"), agents="right", limit=2).trials[0].ok == 2
    assert assay.run(project / "suite.yaml", agents="right", tags="easy").trials[0].ok == 1


def test_an_agent_that_does_not_exist_is_refused_with_those_that_do(project: Path) -> None:
    with pytest.raises(assay.SpecError, match=r"agents: .*'nobody'.*right"):
        assay.run("suite.yaml", agents=["nobody"])


@pytest.mark.parametrize(
    ("keyword", "says"),
    [
        ("nonsense", "agents"),
        ("repetition", "'repetitions'"),
        ("iterations", "repetitions and warmup"),
    ],
)
def test_an_unknown_keyword_is_a_type_error_that_names_the_nearest(
    project: Path, keyword: str, says: str
) -> None:
    options: dict[str, Any] = {keyword: 1}
    with pytest.raises(TypeError, match=rf"no keyword '{keyword}'.*{says}") as caught:
        assay.run("suite.yaml", **options)
    assert isinstance(caught.value, assay.AssayError)


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("repetitions", 0),
        ("repetitions", "3"),
        ("limit", -1),
        ("agents", 3),
        ("isolation", "thread"),
        ("budget_usd", 0.0),
        ("seed", 2**32),
        ("sweep", {"a": 1}),
    ],
)
def test_a_value_that_the_command_would_refuse_is_refused(project: Path, keyword: str, value: object) -> None:
    options: dict[str, Any] = {keyword: value}
    with pytest.raises(assay.PlanError, match=rf"run\({keyword}="):
        assay.run("suite.yaml", **options)


def test_keywords_that_do_not_go_together_are_refused(project: Path) -> None:
    with pytest.raises(assay.PlanError, match="needs something to run"):
        assay.run()
    with pytest.raises(assay.PlanError, match="scorer works only with your own cases"):
        assay.run("suite.yaml", scorer="exact")
    with pytest.raises(assay.PlanError, match="needs agents"):
        assay.run(cases=CASES)
    with pytest.raises(assay.PlanError, match="takes no target"):
        assay.run("suite.yaml", resume="last")


def test_cases_and_functions_of_the_session_are_scored_inline(project: Path) -> None:
    async def in_async(question: str) -> str:
        await asyncio.sleep(0)
        return add(question)

    def in_pieces(question: str) -> Iterator[str]:
        yield add(question)

    async def in_async_pieces(question: str) -> AsyncIterator[str]:
        yield add(question)

    result = assay.run(
        cases=CASES,
        agents={
            "plain": lambda question: "2" if question == "1+1" else "6",
            "async": in_async,
            "pieces": in_pieces,
            "async pieces": in_async_pieces,
        },
        scorer="exact",
        repetitions=2,
    )

    assert result.isolation == "inline"
    assert scores(result) == {"plain": 1.0, "async": 0.5, "pieces": 0.5, "async pieces": 0.5}


def test_functions_of_a_module_run_in_processes_of_their_own(project: Path) -> None:
    (project / "mylib.py").write_text(LIB)
    sys.path.insert(0, str(project))
    import mylib  # type: ignore[import-not-found]

    result = assay.run(
        cases=[{"input": "x", "expected": str(os.getpid())}],
        agents=[mylib.process],
        scorer=[mylib.half, "exact"],
        repetitions=1,
        warmup=0,
    )

    assert result.isolation == "process"
    row = result.to_pandas().iloc[0]
    assert (row["agent"], row["score.half"], row["score.exact"]) == ("process", 0.5, 0.0)


def test_a_time_limit_holds_for_a_function_of_a_module_and_is_refused_inline(project: Path) -> None:
    (project / "mylib.py").write_text(LIB)
    sys.path.insert(0, str(project))
    import mylib

    result = assay.run(cases=CASES[:1], agents=[mylib.slow], limits={"seconds": 0.5}, repetitions=1, warmup=0)
    assert (result.trials[0].counts, result.status) == ({"timeout": 1}, "failed")

    with pytest.raises(assay.PlanError, match=r"seconds.*'inline' cannot enforce"):
        assay.run(cases=CASES, agents={"mine": lambda question: question}, limits={"seconds": 0.5})


def test_an_isolation_that_a_function_cannot_have_is_refused(project: Path) -> None:
    with pytest.raises(assay.PlanError, match=r"isolation='process'.*'mine'"):
        assay.run(cases=CASES, agents={"mine": lambda question: question}, isolation="process")


def test_functions_and_definitions_are_put_through_a_suite_beside_its_own_agents(project: Path) -> None:
    mine = assay.run(
        "suite.yaml", agents={"mine": lambda question: add(question), "ideal": {"type": "oracle"}}
    )
    assert scores(mine) == {"mine": 1.0, "ideal": 1.0}

    named = assay.run("suite.yaml", agents=["wrong", add, {"name": "two", "type": "stub", "answer": "2"}])
    assert scores(named) == {"wrong": 0.0, "add": 1.0, "two": pytest.approx(1 / 3)}


def test_a_function_scores_and_a_case_without_input_is_named(project: Path) -> None:
    result = assay.run(
        cases=CASES, agents={"a": lambda question: "x"}, scorer=lambda output, expected: 0.25, repetitions=1
    )
    assert scores(result) == {"a": 0.25}

    with pytest.raises(assay.SpecError, match=r"run\(\): cases\.1: .*'input'"):
        assay.run(cases=[CASES[0], {"inpt": "x"}], agents=[add])
    with pytest.raises(assay.PlanError, match=r"cases\.0 .*JSON"):
        assay.run(cases=[{"input": object()}], agents=[add])


def test_cases_may_stand_in_a_file(project: Path) -> None:
    (project / "cases.jsonl").write_text("\n".join(json.dumps(case) for case in CASES))

    assert scores(assay.run(cases=Path("cases.jsonl"), agents={"mine": add}, suite="mine")) == {"mine": 0.5}


def test_a_run_works_while_an_event_loop_is_running_as_in_a_notebook(project: Path) -> None:
    async def in_async(question: str) -> str:
        await asyncio.sleep(0.001)
        return add(question)

    async def notebook() -> assay.RunResult:
        return assay.run(cases=CASES, agents={"mine": in_async}, repetitions=1)

    assert scores(asyncio.run(notebook())) == {"mine": 0.5}


def run_script(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(text)
    return subprocess.run(
        [sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_script_without_a_main_guard_runs_once(project: Path) -> None:
    done = run_script(
        project,
        "import assay\nprint('started')\ndef mine(question): return '2'\n"
        "print(assay.run('suite.yaml', agents={'mine': mine}).isolation)\n"
        "print(assay.run('suite.yaml', agents=['right']).isolation)\n",
    )

    assert done.stdout.split() == ["started", "inline", "process"], done.stderr


def test_a_script_that_runs_its_own_file_is_told_to_guard_the_call(project: Path) -> None:
    done = run_script(
        project,
        "import assay\n@assay.benchmark(name='b')\ndef b(): pass\nassay.run('script.py')\n",
    )

    guard = 'if __name__ == "__main__":'
    assert guard in done.stderr
    assert done.stderr.count("Traceback (") <= 3


def test_ctrl_c_ends_a_script_and_the_run_can_be_resumed(project: Path) -> None:
    (project / "script.py").write_text(
        "import asyncio, sys, time, assay\n"
        "def mine(question):\n    print('asked', flush=True); time.sleep(0.3); return '2'\n"
        "async def main():\n    assay.run('suite.yaml', agents={'mine': mine}, repetitions=1000)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "script.py"], cwd=project, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            while "asked" not in process.stderr.readline():
                pass
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()

    assert process.returncode != 0
    assert "run(resume=" in told


def test_ctrl_c_ends_a_run_beside_an_event_loop_if_the_kernel_gives_the_signal_to_another_thread(
    project: Path,
) -> None:
    asked: list[str] = []

    def mine(question: str) -> str:
        if not asked:
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        asked.append(question)
        time.sleep(0.02)
        return "2"

    async def notebook() -> None:
        assay.run("suite.yaml", agents={"mine": mine}, repetitions=100)

    with pytest.raises(KeyboardInterrupt, match="resume="):
        asyncio.run(notebook())

    assert len(asked) < 300


def test_progress_is_shown_when_asked_for(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assay.run("suite.yaml", agents="right")
    assert capsys.readouterr().err == ""
    assay.run("suite.yaml", agents="right", progress=True)
    assert "3 executions" in capsys.readouterr().err


def test_reports_a_group_and_a_database_of_ones_own(project: Path, assay_inline: AssayInline) -> None:
    result = assay.run(
        "suite.yaml", agents="right", label="nightly", report=["md", "csv"], out="out", db=project / "own.db"
    )

    assert {file.name for file in result.files} == {"report.md", "executions.csv"}
    shown = assay_inline("show", "last", "--json", "--db", f"sqlite:///{project}/own.db").json
    assert (shown["run_id"], shown["tags"]) == (result.run_id, ["nightly"])


def test_params_sweep_and_processes_reach_an_experiment(project: Path) -> None:
    (project / "mylib.py").write_text(
        "import pydantic, assay\n@assay.register_experiment('sized')\nclass Sized(assay.Experiment):\n"
        "    class Params(pydantic.BaseModel):\n        size: int = 1\n        step: int = 1\n"
        "    def execute_once(self, context): return {'n': float(self.params.size * self.params.step)}\n"
    )

    result = assay.run("mylib.py::sized", params={"step": 10}, sweep={"size": [2, 3]}, processes=2)

    frame = result.to_pandas()
    assert sorted(frame["n"]) == [20.0, 20.0, 30.0, 30.0]
    assert sorted(set(frame["params.size"])) == [2, 3]


def test_a_budget_ends_the_run(project: Path) -> None:
    def costly(question: str) -> dict[str, object]:
        return {"output": "2", "usage": {"input_tokens": 50, "output_tokens": 50}}

    with pytest.warns(UserWarning, match="'costly'"):
        result = assay.run("suite.yaml", agents={"costly": costly}, repetitions=50, budget_tokens=200)

    assert result.status == "over_budget"


def test_a_budget_that_cannot_see_what_an_agent_costs_is_warned_about(project: Path) -> None:
    unknown = {"type": "http", "url": "http://127.0.0.1:9/"}

    with pytest.warns(UserWarning, match="unknown"):
        assay.run("suite.yaml", agents={"unknown": unknown}, limit=1, budget_usd=1)


def test_a_result_is_shown_as_text_and_as_html_without_running_what_it_names(project: Path) -> None:
    result = assay.run("suite.yaml", agents={"<script>x</script>": lambda question: "2"})

    assert "<script>" in str(result)
    assert "<script>" not in result._repr_html_()
    assert result.run_id in repr(result)
    assert "inline" in repr(result)


def test_the_document_of_a_run_is_that_of_the_command(project: Path, assay_inline: AssayInline) -> None:
    ours = assay.run("suite.yaml", agents="right", seed=1).to_dict()
    theirs = assay_inline("run", "suite.yaml", "--agent", "right", "--seed", "1", "--json").json

    assert ours.keys() == theirs.keys()
    assert [trial["counts"] for trial in ours["trials"]] == [trial["counts"] for trial in theirs["trials"]]
    json.dumps(ours, allow_nan=False)


@pytest.mark.parametrize(
    ("options", "keyword"),
    [({"agents": ["right"]}, "'right'"), ({"limit": 2}, "limit="), ({"cases": ["one"]}, "cases=")],
)
def test_refusals_name_keywords_and_no_options_of_the_command(
    project: Path, options: Any, keyword: str
) -> None:
    with pytest.raises((assay.PlanError, assay.SpecError)) as refusal:
        assay.run("noop", **options)
    assert keyword in str(refusal.value)
    assert "--" not in str(refusal.value)


def test_processes_of_a_suite_are_refused(project: Path) -> None:
    with pytest.raises(assay.PlanError, match="processes="):
        assay.run("suite.yaml", processes=2)


def test_a_misspelt_key_of_a_case_is_warned_about(project: Path) -> None:
    cases = [{"input": "1+1", "expectd": "2"}]
    with pytest.warns(UserWarning, match="expectd"):
        assay.run(cases=cases, agents={"mine": add}, scorer="exact", repetitions=1)


def test_a_refusal_has_no_other_exception_in_its_traceback(project: Path) -> None:
    with pytest.raises(assay.SpecError) as refusal:
        assay.run("suite.yaml", agents=["nobody"])
    assert refusal.value.__context__ is None or refusal.value.__suppress_context__
    with pytest.raises(assay.PlanError) as refused:
        assay.run(cases=CASES, agents=lambda question: "2", scorer="exact")
    assert refused.value.__context__ is None


def test_a_result_prints_no_wider_than_the_terminal(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")

    text = str(assay.run("suite.yaml", agents=["right"], repetitions=2))

    assert max(len(line) for line in text.splitlines()) <= 72
