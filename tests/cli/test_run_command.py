"""`assay run`: targets, options that change a spec, exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.command import Assay, AssayInline
from tests.wording import Wording

BENCH = """\
import asyncio
from pydantic import BaseModel
from assay import Experiment, benchmark, register_experiment


@benchmark(iterations=3, warmup=1, loops=1)
def parse(text: str = "a,b", times: int = 2):
    for _ in range(times):
        text.split(",")
    return {"parts": len(text.split(","))}


@benchmark(name="wait a little", iterations=2, loops=1)
async def wait(seconds: float = 0.0):
    await asyncio.sleep(seconds)


@register_experiment("sized")
class Sized(Experiment):
    class Params(BaseModel):
        size: int = 10
        mode: str = "plain"

    def execute_once(self, context):
        if self.params.mode == "fail":
            raise ValueError("as asked")
        return {"size_seen": self.params.size, "seed_seen": context.seed}


def ordinary(): ...
"""
SPEC = """\
experiment: sized
load: bench.py
params: {size: 5}
iterations: {warmup: 0, measured: 2}
seed: 3
"""


@pytest.fixture
def project(assay_inline: AssayInline) -> AssayInline:
    assay_inline.write("bench.py", BENCH)
    assay_inline.write("spec.yaml", SPEC)
    return assay_inline


def parameters(result: Any) -> list[Any]:
    return [trial["parameters"] for trial in result["trials"]]


def value(trial: Any, metric: str) -> float:
    return float(trial["metrics"][metric]["median"])


def test_a_file_runs_with_every_experiment_and_benchmark_in_it(project: AssayInline) -> None:
    result = project("run", "bench.py", "--json").json

    assert [trial["name"] for trial in result["trials"]] == ["parse", "wait a little", "sized"]
    assert result["status"] == "completed"


@pytest.mark.parametrize("name", ["parse", "wait a little", "wait", "sized", "Sized"])
def test_one_of_a_file_runs_by_slug_or_attribute(project: AssayInline, name: str) -> None:
    result = project("run", f"bench.py::{name}", "--json").json

    assert len(result["trials"]) == 1


def test_arguments_of_a_benchmark_can_be_set_and_swept(project: AssayInline) -> None:
    result = project("run", "bench.py::parse", "--set", "text='x,y,z'", "--sweep", "times=1,2", "--json").json

    assert parameters(result) == [{"text": "x,y,z", "times": 1}, {"text": "x,y,z", "times": 2}]
    assert value(result["trials"][0], "parts") == 3


def test_an_installed_experiment_runs_by_its_name(project: AssayInline) -> None:
    result = project("run", "noop", "--repetitions", "3", "--json").json

    assert result["trials"][0]["counts"] == {"ok": 3}


def test_a_shipped_spec_runs_by_its_name(project: AssayInline) -> None:
    plan = project("run", "pragma_profile_sweep", "--dry-run", "--json").json

    assert len(plan["trials"]) == 12


def test_a_module_and_attribute_run(project: AssayInline) -> None:
    assert project("run", "bench:Sized", "--json").json["trials"][0]["parameters"] == {
        "size": 10,
        "mode": "plain",
    }


def test_options_go_before_what_the_spec_says(project: AssayInline) -> None:
    result = project(
        "run", "spec.yaml", "--set", "size=7", "--repetitions", "4", "--warmup", "1", "--seed", "9",
        "--processes", "2", "--label", "quick", "--label", "mine", "--json",
    ).json  # fmt: skip

    [trial] = result["trials"]
    assert (trial["parameters"]["size"], trial["processes"]) == (7, 2)
    assert (trial["iterations"]["warmup"], trial["iterations"]["measured"]) == (1, 4)
    assert (result["seed"], sorted(result["tags"])) == (9, ["mine", "quick"])
    assert trial["counts"] == {"ok": 8}


def test_a_sweep_on_the_command_line_replaces_a_fixed_param(project: AssayInline) -> None:
    assert parameters(project("run", "spec.yaml", "--sweep", "size=1,2", "--json").json) == [
        {"size": 1, "mode": "plain"},
        {"size": 2, "mode": "plain"},
    ]


def test_a_set_on_the_command_line_replaces_a_sweep(project: AssayInline) -> None:
    project.write("spec.yaml", SPEC.replace("params: {size: 5}", "sweep: {size: [1, 2, 3]}"))

    assert [
        one["size"] for one in parameters(project("run", "spec.yaml", "--set", "size=9", "--json").json)
    ] == [9]


@pytest.mark.parametrize("isolation", ["inline", "process", "cold"])
def test_isolation_is_chosen_by_an_option(project: AssayInline, isolation: str) -> None:
    result = project("run", "spec.yaml", "--isolation", isolation, "--json").json

    assert result["trials"][0]["isolation"] == isolation
    assert result["trials"][0]["counts"] == {"ok": 2}


def test_a_file_given_with_load_makes_its_names_known(project: AssayInline) -> None:
    project.write("spec.yaml", SPEC.replace("load: bench.py\n", ""))

    assert project("run", "spec.yaml", "--load", "bench.py", "--json").json["status"] == "completed"


def test_files_and_tags_are_added_to_those_of_the_spec(project: AssayInline) -> None:
    project.write("more.py", "loaded = True\n")
    project.write("spec.yaml", SPEC + "tags: [nightly]\n")

    result = project(
        "run", "spec.yaml", "--load", "more.py", "--label", "mine", "--label", "nightly", "--json"
    ).json

    assert (result["status"], sorted(result["tags"])) == ("completed", ["mine", "nightly"])


def test_what_is_written_goes_where_out_says(project: AssayInline, wording: Wording) -> None:
    result = project(
        "run", "spec.yaml", "--out", "here", "--report", "csv,md", "--report", "junit", "--json"
    ).json

    files = {file.name for file in (project.folder / "here").iterdir() if file.is_file()}
    assert len(result["files"]) >= 3
    assert {file.removeprefix("here/") for file in result["files"]} <= files
    assert len(list((project.folder / "here").glob("sized_*/README.md"))) == 1
    told = project("run", "spec.yaml", "--out", "there").err
    assert str(project.folder / "there") in told
    wording(told, near="<folder>")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_run_whose_report_cannot_be_written_is_stored_and_named(
    project: AssayInline, wording: Wording
) -> None:
    (project.folder / "here").mkdir()
    (project.folder / "here" / "report.md").symlink_to("/dev/full")

    done = project("run", "spec.yaml", "--out", "here", "--report", "md")

    (run,) = project("runs", "list", "--json").json
    assert f"assay report {run['id']} --format md --out FOLDER" in done.refusal
    assert "report.md': No space left on device" in done.refusal
    wording(done.refusal.replace(run["id"], "RUN"), near="stored")


def test_a_report_without_a_folder_gets_one_of_its_own(project: AssayInline) -> None:
    result = project("run", "spec.yaml", "--report", "csv", "--json").json

    assert all(file.startswith(f"report-{result['run_id']}/") for file in result["files"])


def test_a_dry_run_says_what_would_run_and_runs_nothing(project: AssayInline) -> None:
    plan = project("run", "spec.yaml", "--sweep", "size=1,2", "--processes", "3", "--dry-run", "--json").json

    assert [trial["name"] for trial in plan["trials"]] == ["sized[size=1]", "sized[size=2]"]
    assert plan["executions"] == 12
    assert project("runs", "list", "--json").json == []


def test_a_run_with_nothing_but_failures_in_a_trial_exits_with_1(project: AssayInline) -> None:
    done = project("run", "spec.yaml", "--sweep", "mode=plain,fail", "--json")

    assert done.code == 1
    assert '"status": "failed"' in done.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["spec.yaml", "--set", "sice=3"], ["Error: --set: sice: ", "'sized'", "'size'"]),
        (["spec.yaml", "--set", "size=big"], ["Error: --set: size: ", "'big'"]),
        (["spec.yaml", "--sweep", "sice=3,4"], ["Error: --sweep: sice: ", "'sized'", "'size'"]),
        (["spec.yaml", "--executor", "locl"], ["Error: --executor: ", "'locl'", "Executors: local"]),
        (["spec.yaml", "--load", "gone.py"], ["Error: --load: ", "gone.py'"]),
        (["spec.yaml", "--isolation", "inline", "--processes", "2"], ["Error: --isolation: ", "'inline'"]),
        (["spec.yaml", "--report", "htm"], ["Error: ", "'htm'", ", html, "]),
        (["spec.yaml", "--set", "size"], ["Error: ", "'size'", "KEY=VALUE"]),
        (["spec.yaml", "--sweep", "size="], ["Error: ", "'size='", "KEY=V1,V2,…"]),
        (["gone.yaml"], ["Error: gone.yaml: "]),
        (["gone.py"], ["Error: ", "'gone.py'"]),
        (["bench.py::pars"], ["Error: bench.py::pars: ", "'pars'", "parse"]),
        (["bench.py::ordinary"], ["Error: bench.py::ordinary: ", "execute_once"]),
        (["nop"], ["Error: ", "'nop'", "noop"]),
        (["nowhere:Thing"], ["Error: nowhere:Thing: ", "'nowhere'"]),
        ([], ["Error: ", "TARGET", "--resume RUN"]),
        (["spec.yaml", "--resume", "last"], ["Error: ", "TARGET", "--resume RUN"]),
        (["--resume", "last", "--set", "size=3"], ["Error: ", "--resume", "--report", "--out"]),
        (["spec.yaml", "--repetitions", "0"], ["Error: ", "'--repetitions'"]),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_before_anything_runs(
    project: AssayInline, arguments: list[str], told: list[str], wording: Wording
) -> None:
    refusal = project("run", *arguments, "--json").refusal

    (line,) = (line for line in refusal.splitlines() if line.startswith(told[0]))
    assert all(part in line for part in told), refusal
    wording(re.sub(r"(\w+, ){4,}\w+( and \d+ more)?", "…", line))
    assert project("runs", "list", "--json").json == []


def test_every_mistake_is_reported_at_once_and_none_as_a_traceback(assay: Assay) -> None:
    assay.write("spec.yaml", "experiment: nop\nseed: x\nprocesses: 0\n")

    refusal = assay("run", "spec.yaml", "--json").refusal

    assert refusal.startswith("3 ")
    assert [line.split(": ")[0] for line in refusal.splitlines()[1:]] == [
        "spec.yaml:1",
        "spec.yaml:2",
        "spec.yaml:3",
    ]


def test_values_are_typed_as_yaml_would(project: AssayInline) -> None:
    project.write(
        "typed.py",
        "from assay import benchmark\n@benchmark(iterations=1, loops=1)\n"
        "def show(a=None, b=None, c=None, d=None, e=None): ...\n",
    )

    result = project(
        "run", "typed.py", "--set", "a=1", "--set", "b=1e3", "--set", "c=[1, x]", "--set", "d='1'", "--set", "e=a b: c", "--json"
    ).json  # fmt: skip

    assert parameters(result) == [{"a": 1, "b": 1000.0, "c": [1, "x"], "d": "1", "e": "a b: c"}]


def test_a_sweep_may_be_over_lists_and_text_with_brackets(project: AssayInline) -> None:
    project.write(
        "typed.py",
        "from assay import benchmark\n@benchmark(iterations=1, loops=1)\ndef show(a: list = []): ...\n",
    )

    result = project("run", "typed.py", "--sweep", "a=[1,2],[3]", "--json").json

    assert parameters(result) == [{"a": [1, 2]}, {"a": [3]}]


def test_a_file_without_experiments_says_how_to_mark_one(project: AssayInline, wording: Wording) -> None:
    project.write("empty.py", "x = 1\n")

    refusal = project("run", "empty.py").refusal
    assert "'empty.py'" in refusal
    assert "@benchmark" in refusal
    wording(refusal)


def test_an_experiment_registered_in_a_script_runs_from_it(assay: Assay) -> None:
    import subprocess
    import sys

    script = assay.write(
        "script.py",
        BENCH + "\nif __name__ == '__main__':\n    import assay\n"
        "    print(assay.run('script.py::sized', repetitions=2).trials[0].counts)\n",
    )

    done = subprocess.run(
        [sys.executable, script], cwd=assay.folder, capture_output=True, text=True, check=True
    )

    assert "2" in done.stdout


@pytest.mark.parametrize(
    "option", [["--concurrency", "2"], ["--limit", "3"], ["--case", "x"], ["--tag", "x"]]
)
def test_options_of_suites_are_refused_for_experiments(
    project: AssayInline, option: list[str], wording: Wording
) -> None:
    for target in ("spec.yaml", "bench.py", "noop"):
        refusal = project("run", target, *option).refusal
        assert f"'{target}'" in refusal
        assert option[0] in refusal.splitlines()[-1]
    wording(refusal.splitlines()[-1])


def test_a_budget_ends_the_run_of_an_experiment_that_tells_what_it_spends(project: AssayInline) -> None:
    project.write(
        "costly.py",
        "from assay import benchmark\n@benchmark(iterations=50, warmup=0, loops=1)\n"
        "def ask():\n    import time; time.sleep(0.2)\n    return {'usd': 1.0}\n",
    )

    done = project("run", "costly.py", "--budget-usd", "3", "--json")

    assert done.code == 1
    assert json.loads(done.out)["trials"][0]["counts"]["ok"] < 50
