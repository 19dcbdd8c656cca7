"""Files that Assay writes belong to their owner alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.model.redaction import known_secrets
from assay.plugin.private_files import create_private, make_folder, open_private, write_private


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    write_private(tmp_path / "text", "a")
    write_private(tmp_path / "bytes", b"a")
    create_private(tmp_path / "empty")
    with open_private(tmp_path / "open"):
        assert mode(tmp_path / "open") == 0o600
    assert {mode(path) for path in tmp_path.iterdir()} == {0o600}


def test_a_file_that_exists_keeps_its_permissions(tmp_path: Path) -> None:
    shared = tmp_path / "report.md"
    shared.touch(mode=0o644)
    write_private(shared, "new")
    create_private(shared)
    assert (shared.read_text(), mode(shared)) == ("new", 0o644)


def test_only_the_folder_of_assay_itself_is_closed_to_others(tmp_path: Path) -> None:
    make_folder(tmp_path / "results" / ".assay" / "deep")
    assert [mode(tmp_path / name) for name in ("results", "results/.assay")] == [0o777, 0o700]
    make_folder(tmp_path / "results")
    (tmp_path / "file").touch()
    with pytest.raises((FileExistsError, NotADirectoryError)):
        make_folder(tmp_path / "file" / "folder")


def test_a_file_of_text_holds_no_known_secret(tmp_path: Path) -> None:
    known_secrets().learn("v4lue-of-a-secret")
    write_private(tmp_path / "a", "<b>v4lue-of-a-secret</b>")
    assert (tmp_path / "a").read_text() == "<b>[redacted]</b>"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("content", ["text", b"bytes"])
def test_a_file_for_which_there_is_no_room_is_named(content: str | bytes) -> None:
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write_private(Path("/dev/full"), content)
