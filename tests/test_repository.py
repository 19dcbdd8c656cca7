"""Promises that the repository keeps as a whole."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import assay

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))

# Examples may live in the homes of people who do not exist.
MACHINE_PATH = re.compile(r"(?<![\w.~$}])/(?:home|root|work|Users)/(?!(?:ann|someone)/)\w")
REGISTRY = re.compile(
    r"\b(?:pypi|pythonhosted|npmjs|anaconda|artifactory)\.(?:org|com|io)|index[-_]url|find[-_]links"
)
UNFINISHED = re.compile(r"\b(?:TODO|FIXME)\b")


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Every text file that is, or will be, under version control."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    words = [git, "-c", f"safe.directory={ROOT}", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    files = (ROOT / name for name in listed.stdout.splitlines())
    return {str(file.relative_to(ROOT)): text for file in files if (text := _text(file)) is not None}


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
        return None


def _places(texts: dict[str, str], pattern: re.Pattern[str], under: str = "") -> list[str]:
    return [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts.items()
        if name.startswith(under)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_path_of_one_machine(texts: dict[str, str]) -> None:
    assert _places(texts, MACHINE_PATH) == []


def test_no_file_names_a_package_registry(texts: dict[str, str]) -> None:
    assert _places(texts, REGISTRY) == []


def test_nothing_in_the_source_is_left_unfinished(texts: dict[str, str]) -> None:
    assert _places(texts, UNFINISHED, under="src/") == []


@pytest.mark.parametrize("folder", ["home", "root", "work", "Users"])
def test_the_search_recognises_a_path_of_one_machine(folder: str) -> None:
    assert MACHINE_PATH.search(f"open('/{folder}/project/spec.yaml')")


def test_decisions_are_numbered_once_each() -> None:
    numbers = Counter(file.name[:4] for file in DECISIONS)

    assert numbers
    assert [number for number, times in numbers.items() if times > 1] == []


@pytest.mark.parametrize("file", DECISIONS, ids=lambda file: file.stem)
def test_a_decision_opens_with_its_number_and_says_why(file: Path) -> None:
    text = file.read_text(encoding="utf-8")

    assert re.fullmatch(r"\d{4}(-[a-z0-9]+)+\.md", file.name)
    assert text.startswith(f"# {file.name[:4]}: ")
    assert "\n## Why\n" in text


def test_the_index_of_the_docs_leads_to_every_page_and_folder() -> None:
    docs = ROOT / "docs"
    links = set(re.findall(r"\]\(([^)#:]+)", (docs / "README.md").read_text(encoding="utf-8")))
    pages = {file.name for file in docs.glob("*.md")} - {"README.md"}
    folders = {folder.name for folder in docs.iterdir() if folder.is_dir() and any(folder.glob("*.md"))}

    assert sorted((pages | folders) - {link.split("/")[0] for link in links}) == []
    assert [link for link in links if not (docs / link).exists()] == []


def test_constraints_pin_every_package_and_name_no_place() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()

    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[\w.+]+", line)] == []


def test_the_public_names_are_sorted_and_can_all_be_had() -> None:
    assert assay.__all__ == sorted(assay.__all__)
    assert [name for name in assay.__all__ if not hasattr(assay, name)] == []


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        assay.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_importing_assay_loads_none_of_its_dependencies() -> None:
    heavy = ("numpy", "sqlalchemy", "rich", "pydantic", "click", "jinja2", "yaml", "psutil", "vl_convert")
    code = f"import sys, assay; print([name for name in {heavy} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "target",
    sorted(
        target
        for points in (*PROJECT["entry-points"].values(), PROJECT["scripts"])
        for target in points.values()
    ),
)
def test_every_entry_point_leads_somewhere(target: str) -> None:
    module, _, attribute = target.partition(":")

    assert callable(getattr(importlib.import_module(module), attribute))
