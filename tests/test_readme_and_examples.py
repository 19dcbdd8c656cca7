"""Every command that the README and the examples show is run as it stands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from shlex import quote

import pytest
from tests import forking

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted(
    path.parent.name for path in (ROOT / "examples").glob("*/README.md") if path.parent.name != "cluster"
)
"""The clusters are not started here."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(text: str, *kinds: str) -> list[str]:
    return [body for kind, body in BLOCK.findall(text) if kind in kinds]


def commands(text: str) -> list[str]:
    lines = "".join(blocks(text, "sh")).splitlines()
    return [line.split("   #")[0].strip() for line in lines if line.strip() and not line.startswith("#")]


def write_files(text: str, folder: Path) -> None:
    for body in blocks(text, "python", "yaml"):
        first, _, _ = body.partition("\n")
        if first.startswith("# ") and "." in first and " " not in first[2:]:
            path = folder / first[2:]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body)


def run_in_one_shell(lines: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """One shell, as a reader would have; the first command that fails ends it. `compare` may find something: that is 1."""
    script = "set -e\n" + "\n".join(lines)
    with tempfile.TemporaryDirectory() as programs:
        environment = {**os.environ, **forking.for_shells(Path(programs)), "NO_COLOR": "1"}
        environment.pop("ASSAY_DB", None)
        return subprocess.run(
            ["sh", "-c", script],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )


def with_fewer_processes(text: str) -> str:
    """What is shown works with any number of them; ten are for narrow intervals."""
    return re.sub(r"(processes:? )(?:10|6)\b", r"\g<1>3", text)


def whatever_it_finds(line: str) -> str:
    """Two runs of the same thing may differ on a machine that is busy with something else meanwhile."""
    if line.startswith("assay gate"):
        return f"{line} || [ $? -eq 1 ]"
    return line.replace(" --fail-on worse", "")


@pytest.mark.slow
def test_every_command_of_the_readme_works(tmp_path: Path) -> None:
    text = with_fewer_processes((ROOT / "README.md").read_text())
    write_files(text, tmp_path)
    lines = [line for line in commands(text) if not line.startswith(("pip ", "make "))]
    begins = lines.index("assay run greeting.yaml")
    in_try, here = lines[:begins], lines[begins:]
    for some in (in_try, here):
        done = run_in_one_shell([whatever_it_finds(line) for line in some], tmp_path)
        assert done.returncode == 0, done.stderr[-3000:]
    assert list((tmp_path / "try").glob("report-*/report.html"))


def test_the_function_of_the_readme_measures_itself_when_run_as_a_script(tmp_path: Path) -> None:
    write_files((ROOT / "README.md").read_text(), tmp_path)
    done = run_in_one_shell(["python bench.py"], tmp_path)
    assert re.fullmatch(r"\d+\.\d{4} ms\n", done.stdout)


def test_the_python_example_of_the_readme_names_the_agent_that_leads(tmp_path: Path) -> None:
    write_files((ROOT / "README.md").read_text(), tmp_path)
    done = run_in_one_shell(["python notebook.py"], tmp_path)
    assert "upper leads" in done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_command_of_an_example_works(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    shutil.copytree(
        ROOT / "examples" / name, folder, ignore=shutil.ignore_patterns(".assay", "__pycache__", "report-*")
    )
    for file in (*folder.glob("*.yaml"), folder / "README.md"):
        file.write_text(with_fewer_processes(file.read_text()))
    done = run_in_one_shell(commands((folder / "README.md").read_text()), folder)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_shows_its_result(name: str) -> None:
    folder = ROOT / "examples" / name
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (folder / "README.md").read_text())
    assert pictures
    assert all((folder / picture).stat().st_size > 1000 for picture in pictures)


@pytest.mark.slow
def test_every_example_of_the_page_about_python_works(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "python.md").read_text()
    write_files(text, tmp_path)
    done = run_in_one_shell(commands(text), tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "score 1.0 0.5" in done.stdout


@pytest.mark.slow
def test_every_command_of_the_page_about_workflows_works(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "workflow.md").read_text()
    write_files(text, tmp_path)
    done = run_in_one_shell(commands(text), tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("1.0\n")
    assert list((tmp_path / "benchmarks").glob("run_*/model_comparison.png"))


@pytest.mark.slow
def test_every_command_of_the_page_about_indexes_and_databases_works(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "indexes-and-databases.md").read_text()
    lines = commands(text.replace("--processes 6", "--processes 1"))
    done = run_in_one_shell(lines, tmp_path)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]


def test_the_page_about_indexes_and_databases_names_every_param_metric_and_list() -> None:
    from assay.plugin.lookup import find
    from assay.plugin.params import param_model

    text = (ROOT / "docs" / "indexes-and-databases.md").read_text()
    slugs = re.findall(r"^### (\w+)$", text, re.MULTILINE)
    assert len(slugs) == 7
    members = [find("experiments", slug) for slug in slugs]
    names = {
        name
        for member in members
        for name in (*member.metrics, *param_model(member).model_fields, *getattr(member, "list_params", ()))
    }
    names -= {f"{phase}_p{q}_seconds" for phase in ("read", "search") for q in (50, 95, 99)}
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


@pytest.mark.slow
def test_every_command_of_the_page_about_the_simulation_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = (ROOT / "docs" / "simulation.md").read_text()
    write_files(text, tmp_path)
    done = run_in_one_shell(commands(text), tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "13, 13, 13)" in done.stdout
    assert "True True" in done.stdout


def test_the_page_about_the_simulation_names_every_param_metric_and_channel() -> None:
    from assay.plugin.lookup import find
    from assay.plugin.params import param_model
    from assay.simulation.perception import CHANNELS

    text = (ROOT / "docs" / "simulation.md").read_text()
    names = (
        "memory_db",
        "observation_flow",
        "perception_metrics",
        "observation_profiler",
        "system_profiler",
    )
    members = [find("experiments", name) for name in names]
    told = {name for member in members for name in (*member.metrics, *param_model(member).model_fields)}
    profile = {name for name in told if name.startswith("perception_profile.")}
    assert [name for name in sorted(told - profile) if f"`{name}`" not in text] == []
    assert [name for name in CHANNELS if name.split("_")[-1] not in text] == []


@pytest.mark.slow
def test_every_command_of_the_page_about_agent_components_works(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "components.md").read_text()
    write_files(text, tmp_path)
    # The first shows four experiments that are repeated a thousand times.
    lines = [
        re.sub(r"--repetitions 200|(?<=latency)(?= --report)", " --repetitions 30", line)
        for line in commands(text)
    ]
    assert " --repetitions 30 --report html,json" in lines[0]
    done = run_in_one_shell(lines, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "benchmark_results" / "benchmark_results.html").is_file()


def test_the_page_about_agent_components_names_every_benchmark_and_protocol() -> None:
    from assay.plugin import components
    from assay.spec.files import builtin_specs
    from assay.spec.read import load_spec

    text = (ROOT / "docs" / "components.md").read_text()
    slugs = [located.entry.experiment for located in load_spec(builtin_specs()["agent_components"]).entries]
    protocols = [name for name, value in vars(components).items() if getattr(value, "_is_protocol", False)]
    assert [name for name in (*slugs, *protocols) if f"`{name}`" not in text and name != "Protocol"] == []


def test_the_page_about_workflows_names_every_metric_and_fault() -> None:
    from assay.builtin.experiments.workflow_figures import METRICS
    from assay.builtin.experiments.workflow_plan import FAULTS

    text = (ROOT / "docs" / "workflow.md").read_text()
    assert [name for name in (*METRICS, *FAULTS) if f"`{name}`" not in text] == []


@pytest.mark.slow
def test_the_script_of_the_workflow_benchmark_works(tmp_path: Path) -> None:
    script = ROOT / "examples" / "run_benchmark.py"
    line = f"python {quote(str(script))} --models reference simulated --repetitions 1"
    done = run_in_one_shell([line], tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Benchmark completed" in done.stdout


def test_the_page_about_python_names_every_keyword() -> None:
    from assay import CompareOptions, GateOptions, LeaderboardOptions, RunOptions

    text = (ROOT / "docs" / "python.md").read_text()
    kinds = (CompareOptions, GateOptions, LeaderboardOptions, RunOptions)
    assert [name for kind in kinds for name in kind.__annotations__ if f"`{name}`" not in text] == []


@pytest.mark.slow
def test_the_demo_prints_at_most_80_lines_and_answers_its_questions(tmp_path: Path) -> None:
    # Filling the dashboard takes a minute; the tests of its pages do it.
    done = run_in_one_shell([f"DASHBOARD=no sh {quote(str(ROOT / 'examples' / 'demo.sh'))} 2>&1"], tmp_path)
    assert done.returncode == 0, done.stdout[-3000:]
    # `make` adds a line when it installs, and a slow machine a few lines of progress.
    assert len(done.stdout.splitlines()) <= 77
    answers = re.split(r"^\d\. .*$", done.stdout, flags=re.MULTILINE)[1:]
    # On a busy machine three rounds may be too few to tell agents by speed, which overall includes.
    verdicts = (
        r"exact leads|exact(, \w+)* and \w+ are tied: overall exact",
        r"exact leads; .*|exact(, \w+)* and \w+ are tied",
        # Greedy is quicker. Where the three rounds show it, the choice is left to the reader, and the score is what exact wins.
        r"Prefer 'exact'|'exact' is better in score",
        r"report/report\.html",
    )
    for answer, verdict in zip(answers, verdicts, strict=True):
        # Where a sentence breaks depends on how long its words are.
        assert re.search(verdict, " ".join(answer.split())), answer
    assert (tmp_path / "demo" / "report" / "report.html").exists()


@pytest.mark.slow
def test_every_example_of_the_page_about_plug_ins_works(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "plugins.md").read_text()
    write_files(text, tmp_path)
    (tmp_path / "assay.toml").write_text('[assay]\nagents = ["agents.yaml"]\n')

    done = run_in_one_shell(commands(text), tmp_path)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert next((tmp_path / "results").rglob("summary.txt")).read_text().count(": 5 ok") == 2


def test_every_block_of_code_on_the_page_about_plug_ins_is_written_and_run() -> None:
    text = (ROOT / "docs" / "plugins.md").read_text()

    nameless = [body for body in blocks(text, "python") if not re.match(r"# \w+\.py\n", body)]

    assert nameless == []


def test_the_page_about_plug_ins_imports_only_what_is_public() -> None:
    text = (ROOT / "docs" / "plugins.md").read_text()
    public = r"assay(\.(plugin|model|stats|testing|errors)(\.\w+)?)?"

    imported = re.findall(r"\b(?:from|import) +(assay[\w.]*)", text)

    assert len(imported) > 5
    assert [name for name in imported if not re.fullmatch(public, name)] == []
    assert re.findall(r"assay[./](?:builtin|execute|load|report|analysis)\b", text) == []
    assert re.findall(r"from assay\.plugin\.(?!charts|figures)\w+", text) == []


def test_the_page_about_plug_ins_names_every_hook_and_every_public_name() -> None:
    from assay import plugin
    from assay.plugin import charts, figures

    text = (ROOT / "docs" / "plugins.md").read_text()
    hooks = (
        plugin.AgentHooks,
        plugin.ScorerHooks,
        plugin.ExperimentHooks,
        plugin.MeasuredFunction,
        plugin.Finding,
        plugin.ScenarioHooks,
    )
    names = {
        name for kind in hooks for name in {**vars(kind), **kind.__annotations__} if not name.startswith("_")
    }

    assert len(names) > 15
    names |= set(vars(plugin)["__all__"]) | {
        name
        for module in (charts, figures)
        for name, member in vars(module).items()
        if getattr(member, "__module__", None) == module.__name__ and not name.startswith("_")
    }
    assert [
        name
        for name in sorted(names)
        if not re.search(rf"`(assay\.plugin\.)?{name}[`(]|import .*\b{name}\b", text)
    ] == []
