"""Commands load what they need and nothing else, and work where optional packages are missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.command import Assay
from tests.wording import Wording

HEAVY = ("numpy", "sqlalchemy", "rich", "pydantic", "alembic", "psutil", "jinja2", "vl_convert", "yaml")
PROBE = """\
import sys
from assay.cli.main import main
try:
    main({arguments!r})
except SystemExit as end:
    print([name for name in {names!r} if name in sys.modules], end.code, file=sys.stderr)
"""
BLOCK = """\
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""


def loaded(tmp_path: Path, *arguments: str) -> str:
    """Which heavy packages a command loads, and its exit code."""
    code = PROBE.format(arguments=list(arguments), names=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["run", "--help"], ["list", "--json"], ["list", "experiments", "--json"]],
)
def test_help_and_lists_load_no_heavy_package(tmp_path: Path, arguments: list[str]) -> None:
    assert loaded(tmp_path, *arguments) == "[] 0"


def test_a_run_of_one_execution_loads_neither_numpy_nor_what_people_look_at(tmp_path: Path) -> None:
    assert (
        loaded(tmp_path, "run", "noop", "--isolation", "inline", "--json", "-q")
        == "['sqlalchemy', 'pydantic'] 0"
    )


def test_the_probe_sees_what_is_loaded(tmp_path: Path) -> None:
    assert "pydantic" in loaded(tmp_path, "schema", "spec")


@pytest.mark.parametrize("module", ["leaderboard", "compare"])
def test_leaderboards_and_comparisons_load_nothing_that_reads_specs(module: str) -> None:
    unwanted = ("pydantic", "yaml", "assay.plan", "assay.spec", "jinja2", "alembic", "psutil")
    code = f"import sys, assay.pipeline.{module}; print([name for name in {unwanted} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_leaderboards_load_the_ranking_across_suites_only_to_show_it() -> None:
    code = (
        "import sys, assay.pipeline.leaderboard; print('assay.analysis.ranking.across_suites' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_worker_of_code_loads_neither_heavy_packages_nor_ratings() -> None:
    unwanted = (*HEAVY, "datetime", "logging", "assay.model.rating")
    modules = "assay.execute.worker, assay.execute.attempt"
    code = f"import sys, {modules}; print([name for name in {unwanted} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_worker_of_agents_loads_no_heavy_package() -> None:
    modules = (
        "assay.execute.worker, assay.execute.attempt, assay.execute.suite_job, assay.builtin.scorers.exact"
    )
    code = f"import sys, {modules}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def without(folder: Path, *names: str) -> dict[str, str]:
    """An environment in which these packages cannot be imported."""
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(BLOCK.format(names=names))
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(site)}


def run(folder: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("assay")
    return subprocess.run(
        [command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


def test_a_list_works_with_every_optional_package_missing(tmp_path: Path) -> None:
    environment = without(
        tmp_path, "psycopg", "pynvml", "psutil", "numpy", "vl_convert", "jinja2", "ray", "rich"
    )

    done = run(tmp_path, environment, "list", "--json")

    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert {"noop", "pragma_profile"} <= {row["name"] for row in listed["experiments"]}
    assert {"timing", "psutil", "gpu"} <= {row["name"] for row in listed["instruments"]}


def test_a_list_with_params_tells_which_experiment_could_not_be_loaded(
    tmp_path: Path, wording: Wording
) -> None:
    (tmp_path / "assay.toml").write_text('[assay]\nload = ["*.py"]\n')
    (tmp_path / "broken.py").write_text("import no_such_package_here\n")
    (tmp_path / "fine.py").write_text(
        "from assay import benchmark\n@benchmark\ndef fine(size: int = 3): ...\n"
    )

    done = run(tmp_path, without(tmp_path), "list", "experiments", "--params", "--json")

    listed = {row["name"]: row for row in json.loads(done.stdout)}
    assert done.returncode == 0
    assert listed["fine"]["params"] == {"size": {"type": "integer", "default": 3}}
    (told,) = (line for line in done.stderr.splitlines() if "broken.py'" in line)
    assert "line 1: ModuleNotFoundError" in told
    wording(told)


def test_an_instrument_whose_package_is_missing_says_how_to_get_it(tmp_path: Path, wording: Wording) -> None:
    (tmp_path / "needy.py").write_text("import pynvml\n")
    (tmp_path / "spec.yaml").write_text("experiment: noop\ninstrumentation: [timing, 'needy:Watch']\n")

    done = run(tmp_path, without(tmp_path, "pynvml"), "validate", "spec.yaml")

    assert done.returncode == 2
    command = "pip install 'assay-bench[gpu]'"
    (told,) = (line for line in done.stderr.splitlines() if "spec.yaml:2: instrumentation.1: " in line)
    assert all(part in told for part in ("'needy:Watch'", "'pynvml'", command))
    wording(told)


def test_listing_imports_no_plug_in(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom assay.cli.main import main\ntry: main(['list', '--json', '--quiet'])\n"
        "except SystemExit: print([name for name in sys.modules if name.startswith('assay.builtin')], file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stderr == "[]\n"


LOADED = """\
import atexit, threading, time
{code}
"""
ENDINGS = {
    "a function for the end": "atexit.register(lambda: open('ended', 'w').close())",
    "a thread at work": "threading.Thread(target=lambda: (time.sleep(0.3), open('ended', 'w').close())).start()",
}


@pytest.mark.real_starts
@pytest.mark.parametrize("ending", ENDINGS)
def test_what_loaded_code_leaves_for_the_end_of_the_process_happens(tmp_path: Path, ending: str) -> None:
    (tmp_path / "mine.py").write_text(LOADED.format(code=ENDINGS[ending]))
    done = Assay(tmp_path)("list", "--load", "mine.py", "--json")
    assert done.code == 0
    assert json.loads(done.out)
    assert (tmp_path / "ended").exists()
