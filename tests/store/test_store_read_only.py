"""Results on media that cannot be written can be read."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.command import AssayInline
from tests.store.examples import batch, begin, execution

from assay.errors import StoreError
from assay.store.store import Store

ReadOnly = Callable[[Path], None]


@pytest.fixture
def make_read_only() -> Iterator[ReadOnly]:
    """A folder as on read-only media; permissions do not bind root, who mounts it."""
    with ExitStack() as stack:

        def make(folder: Path) -> None:
            if os.geteuid() != 0:
                folder.chmod(0o500)
                stack.callback(folder.chmod, 0o700)
                return
            place = str(folder)
            if subprocess.run(["mount", "--bind", place, place], capture_output=True).returncode:
                pytest.skip("needs the right to mount a folder: run the tests as an ordinary user")
            stack.callback(lambda: subprocess.run(["umount", place], check=True))
            subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)

        yield make


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a database, and a copy as a killed program leaves it: the latest change only in its log."""
    made = tmp_path / "media"
    made.mkdir()
    with Store.open(f"sqlite:///{made / 'whole.db'}") as store:
        begin(store, "r1")
        store.add("r1", batch([execution(0)]))
    writer = sqlite3.connect(made / "whole.db")
    writer.execute("INSERT INTO tags VALUES ('r1', 'late')")
    writer.commit()
    for suffix in ("", "-wal"):
        shutil.copy(made / f"whole.db{suffix}", made / f"cut.db{suffix}")
    writer.close()
    return made


@pytest.mark.parametrize("name", ["whole.db", "cut.db"])
def test_a_database_on_read_only_media_can_be_read(folder: Path, name: str, make_read_only: ReadOnly) -> None:
    make_read_only(folder)
    before = sorted(folder.iterdir())
    with Store.open(f"sqlite:///{folder / name}") as store:
        run = store.run("last")
        assert (run.tags, store.counts(run.trials[0].id)) == (("late",), {"ok": 1})
        with pytest.raises(StoreError, match="written"):
            store.tag("r1", ["more"], [])
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "command",
    ["runs list", "show last", "report last --format md --out {out}", "list", "db info", "compare r1 r1"],
)
def test_commands_that_read_work_on_read_only_media(
    folder: Path, tmp_path: Path, make_read_only: ReadOnly, command: str
) -> None:
    make_read_only(folder)
    words = command.format(out=tmp_path / "out").split()
    done = AssayInline(folder)(*words, "--db", "sqlite:///whole.db")
    assert done.code == 0, done.err


def test_a_command_that_writes_says_that_the_file_cannot_be_written(
    folder: Path, make_read_only: ReadOnly
) -> None:
    make_read_only(folder)
    done = AssayInline(folder)("runs", "tag", "last", "x", "--db", "sqlite:///whole.db")
    assert "cannot be written" in done.refusal


@pytest.mark.skipif(
    os.geteuid() == 0, reason="permissions do not bind root: run the tests as an ordinary user"
)
def test_a_file_without_write_permission_can_be_read(folder: Path) -> None:
    (folder / "whole.db").chmod(0o400)
    with Store.open(f"sqlite:///{folder / 'whole.db'}") as store:
        assert store.run("last").tags == ("late",)
