from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from tests import forking
from tests.command import Assay, AssayInline, Prepare
from tests.costs import FAST, WRITE_COSTS, CostMeter, CostWriter, deselect_slow_tests
from tests.parallel import PROCESSES, ParallelLoop
from tests.services import Postgres, postgres_server
from tests.shortcuts import take_shortcuts
from tests.wording import WRITE, MessageWriter, Wording, read_messages, select_tests_with_wording

from assay.builtin.sandboxes.bubblewrap import Bubblewrap
from assay.model.redaction import known_secrets
from assay.plugin import import_check, lookup

# How long an example takes says nothing on a machine that others use as well. Where the folder may not be written to,
# an example that failed is not kept for the next time. Every run of the tests draws other examples, so few of them do;
# whoever hunts a fault asks for more: --hypothesis-profile thorough.
settings.register_profile(
    "shared machine",
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=DirectoryBasedExampleDatabase(".hypothesis/examples") if os.access(".", os.W_OK) else None,
)
settings.register_profile("thorough", settings.get_profile("shared machine"), max_examples=1000)
settings.load_profile("shared machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(PROCESSES, type=int, default=1, help="run test files in so many processes")
    parser.addoption(WRITE, action="store_true", help="write tests/messages.txt instead of comparing with it")
    parser.addoption(FAST, action="store_true", help="leave out the tests that tests/slow_tests.txt names")
    parser.addoption(WRITE_COSTS, action="store_true", help="measure tests and write tests/slow_tests.txt")


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # collecting tests makes no garbage, only objects to look through
    subprocess.Popen = forking.Popen  # type: ignore[misc]
    take_shortcuts()
    if config.getoption(PROCESSES) > 1:
        config.pluginmanager.register(ParallelLoop(config.getoption(PROCESSES)))
    if config.getoption(WRITE):
        config.pluginmanager.register(MessageWriter(is_partial=config.args != config.getini("testpaths")))
    if config.getoption(WRITE_COSTS):
        config.pluginmanager.register(CostMeter())
        config.pluginmanager.register(CostWriter())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption(WRITE):
        items[:] = select_tests_with_wording(items)
    if config.getoption(FAST):
        deselect_slow_tests(config, items)


def pytest_collection_finish() -> None:
    """What was collected stays to the end; looking for garbage in it would only take time, again and again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def messages() -> dict[str, list[str]]:
    """Every text of the golden file."""
    return read_messages()


@pytest.fixture
def wording(
    request: pytest.FixtureRequest,
    messages: dict[str, list[str]],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> Iterator[Wording]:
    """Compare a text that users read with `tests/messages.txt`; `make messages` writes that file again."""
    test = request.node.nodeid
    known = None if request.config.getoption(WRITE) else messages.get(test, [])
    wording = Wording(test, known, tmp_path)
    yield wording
    record_property("wording", json.dumps(wording.texts))
    assert wording.texts, "the test asks for the fixture `wording` and compares nothing"


@pytest.fixture(autouse=True)
def real_starts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a test that is marked `real_starts`, Assay's processes are started and not forked."""
    if request.node.get_closest_marker("real_starts"):
        monkeypatch.setattr(forking, "is_on", False)


@pytest.fixture(autouse=True)
def own_process() -> Iterator[None]:
    """What a test teaches this process about secrets is forgotten after it, and that a command ran in it."""
    yield
    known_secrets.cache_clear()
    import_check._is_on = False


@pytest.fixture
def assay(tmp_path: Path) -> Assay:
    """The real command, as a process, in an empty folder: `assay("run", "noop", "--json").json`."""
    return Assay(tmp_path)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The server that all tests of this process share, as its start takes longer than most of them."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def bubblewrap() -> str:
    """The sandbox of code under judgement. CI must have it; elsewhere tests that need it are skipped without it."""
    found = Bubblewrap()
    if problem := found.problem():
        told = f"{problem}; to enable: apt-get install bubblewrap"
        pytest.fail(told) if os.environ.get("CI") else pytest.skip(told)
    return f"bubblewrap {found.version()}"


@pytest.fixture
def trusted_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge code without a sandbox, for tests whose code is their own, so that they need no bubblewrap."""
    monkeypatch.setenv("ASSAY_SANDBOX", "none")


@pytest.fixture
def assay_inline(tmp_path: Path, own_names: None) -> AssayInline:
    """The command within this process, ten times as quick to start."""
    return AssayInline(tmp_path)


@pytest.fixture(scope="module")
def prepared_folders() -> dict[Callable[[Assay], object], Path]:
    return {}


@pytest.fixture
def prepare(
    prepared_folders: dict[Callable[[Assay], object], Path], tmp_path_factory: pytest.TempPathFactory
) -> Prepare:
    """Do once per file what many of its tests begin with: `prepare(assay_inline, play)`.

    `play` is a function of the file. The first test calls it; the others get a copy of the folder that it left,
    database included.
    """

    def prepare(assay: Assay, fill: Callable[[Assay], object]) -> None:
        if fill in prepared_folders:
            shutil.copytree(prepared_folders[fill], assay.folder, symlinks=True, dirs_exist_ok=True)
            return
        fill(assay)
        kept = tmp_path_factory.mktemp("prepared")
        shutil.copytree(assay.folder, kept, symlinks=True, dirs_exist_ok=True)
        prepared_folders[fill] = kept

    return prepare


@pytest.fixture
def own_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files that this test loads, and what they register, are forgotten after it."""
    monkeypatch.setattr(
        lookup, "_registered", {kind: dict(names) for kind, names in lookup._registered.items()}
    )
    monkeypatch.setattr(
        lookup, "_defined_in", {file: dict(names) for file, names in lookup._defined_in.items()}
    )
    monkeypatch.setattr(lookup, "_loaded", dict(lookup._loaded))
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    folder = str(tmp_path.resolve())
    for name in sys.modules.keys() - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(folder):
            del sys.modules[name]
