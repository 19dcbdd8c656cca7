"""Entry points of distributions that are installed anywhere on the path."""

from __future__ import annotations

import importlib.metadata
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.plugin.entry_points import entry_points

DECLARED = """\
[console_scripts]
thing = thing:main

[assay.scorers]
# a remark
kind = thing.scoring:Kind
strict = thing.scoring:Strict [extra]
"""


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    entry_points.cache_clear()
    yield
    entry_points.cache_clear()


def _install(folder: Path, name: str = "some_thing-1.0.dist-info", text: str = DECLARED) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "entry_points.txt").write_text(text)


def test_they_are_those_that_the_standard_library_finds() -> None:
    for group, points in entry_points().items():
        expected = {point.name: point.value for point in importlib.metadata.entry_points(group=group)}
        assert {name: point.value for name, point in points.items()} == expected


def test_a_distribution_on_the_path_is_found_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = entry_points()["assay.scorers"]["strict"]
    assert (found.value, found.distribution) == ("thing.scoring:Strict", "some-thing")


def test_of_a_distribution_that_is_there_twice_the_first_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path / "late")
    _install(tmp_path / "early", text="[assay.scorers]\nkind = other:Kind\n")
    for place in ("late", "early"):
        monkeypatch.syspath_prepend(str(tmp_path / place))
    scorers = entry_points()["assay.scorers"]
    assert scorers["kind"].value == "other:Kind"
    assert "strict" not in scorers


def test_a_distribution_in_an_archive_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("packed-1.0.dist-info/METADATA", "Name: packed\nVersion: 1.0\n")
        archive.writestr("packed-1.0.dist-info/entry_points.txt", "[assay.scorers]\nzipped = packed:Zipped\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "all.zip"), *sys.path])
    assert entry_points()["assay.scorers"]["zipped"].value == "packed:Zipped"
