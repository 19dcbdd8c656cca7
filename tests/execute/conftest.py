from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
from tests import forking
from tests.execute.carrying import Carried, carry_out_plan, eventually

Carry = Callable[..., Carried]


@pytest.fixture
def carry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Carry:
    monkeypatch.chdir(tmp_path)
    return partial(carry_out_plan, tmp_path)


@pytest.fixture(autouse=True)
def _nothing_is_left_running(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After every test: no process that was started in it, however it detached itself, and no zombie."""
    token = f"ASSAY_TEST={secrets.token_hex(8)}"
    monkeypatch.setenv(*token.split("="))
    # The environment that is searched is the one that a process was started with.
    monkeypatch.setattr(forking, "is_on", False)
    yield
    assert eventually(lambda: not _running(token)), _running(token)
    assert eventually(lambda: not _zombies()), _zombies()


def _zombies() -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [child] if child.status() == psutil.STATUS_ZOMBIE else []
    return found


def _running(token: str) -> list[str]:
    return [
        f"{pid}: {_read(pid, 'cmdline')!r}"
        for pid in filter(str.isdigit, os.listdir("/proc"))
        if token.encode() in _read(pid, "environ")
    ]


def _read(pid: str, what: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:
        return b""
