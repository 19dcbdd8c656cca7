"""Names that a reader understands: the checks behind `make check` find class names that two modules define, and nameless loops."""

from __future__ import annotations

import runpy
from pathlib import Path

CHECK = runpy.run_path(str(Path(__file__).parents[1] / "scripts" / "check_names.py"))


def test_a_class_name_that_two_modules_define_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("class Pool: ...\nclass Own: ...\n")
    (tmp_path / "two.py").write_text("class Pool: ...\n")
    assert CHECK["shared_names"](tmp_path) == {"Pool": [Path("one.py"), Path("two.py")]}


def test_no_class_name_is_shared_here() -> None:
    assert CHECK["shared_names"](CHECK["SOURCES"]) == {}


def test_a_loop_over_things_without_a_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "one = 1\nfor trial in []: ...\nfor key, one in []: ...\nkept = {one for (one, _) in []}\n"
    )
    assert CHECK["nameless_loops"](tmp_path) == [(Path("a.py"), 3), (Path("a.py"), 4)]
