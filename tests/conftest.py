from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from tests.command import Assay, AssayInline

from assay.execute.sandbox import probe_bubblewrap
from assay.model.redaction import known_secrets
from assay.plugin import import_check, lookup

# How long an example takes says nothing on a machine that others use as well. Where the folder may not be written to,
# an example that failed is not kept for the next time.
settings.register_profile(
    "shared machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=DirectoryBasedExampleDatabase(".hypothesis/examples") if os.access(".", os.W_OK) else None,
)
settings.load_profile("shared machine")


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


@pytest.fixture
def bubblewrap() -> str:
    """The sandbox of code under judgement. CI must have it; elsewhere tests that need it are skipped without it."""
    found = probe_bubblewrap()
    if isinstance(found, str):
        told = f"{found}; to enable: apt-get install bubblewrap"
        pytest.fail(told) if os.environ.get("CI") else pytest.skip(told)
    return str(found)


@pytest.fixture
def trusted_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge code without a sandbox, for tests whose code is their own, so that they need no bubblewrap."""
    monkeypatch.setenv("ASSAY_SANDBOX", "none")


@pytest.fixture
def assay_inline(tmp_path: Path, own_names: None) -> AssayInline:
    """The command within this process, ten times as quick to start."""
    return AssayInline(tmp_path)


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
    yield
    folder = str(tmp_path.resolve())
    for name in [
        name
        for name, module in sys.modules.items()
        if (getattr(module, "__file__", None) or "").startswith(folder)
    ]:
        del sys.modules[name]
