"""One word for one thing: the check behind `make check` finds a class name that two modules define."""

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
