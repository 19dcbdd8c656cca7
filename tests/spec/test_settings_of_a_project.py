"""`assay.toml` holds for its folder and all below."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.errors import SpecError
from assay.spec.settings import find_settings


def settings_of(folder: Path, text: str | bytes, **environment: str):
    (folder / "assay.toml").write_bytes(text.encode() if isinstance(text, str) else text)
    return find_settings(folder, environment)


def mistakes(folder: Path, text: str | bytes) -> list[str]:
    with pytest.raises(SpecError) as error:
        settings_of(folder, text).loaded_files()
    return [str(mistake).removeprefix(str(folder / "assay.toml")) for mistake in error.value.mistakes]


def test_without_a_file_the_database_is_in_the_current_folder(tmp_path: Path) -> None:
    assert find_settings(tmp_path, {}).db == f"sqlite:///{tmp_path}/.assay/assay.db"


def test_settings_are_found_upward_and_paths_count_from_there(tmp_path: Path) -> None:
    (tmp_path / "assay.toml").write_text('[assay]\ndb = "sqlite:///own.db"\n')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)

    settings = find_settings(below, {})

    assert (settings.folder, settings.db) == (tmp_path, f"sqlite:///{tmp_path}/own.db")


def test_the_nearest_file_upward_counts(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / "assay.toml").write_text('[assay]\ndb = "sqlite:///far.db"\n')
    (below / "assay.toml").write_text('[assay]\ndb = "sqlite:///near.db"\n')

    assert find_settings(below, {}).db.endswith("/below/near.db")


@pytest.mark.parametrize("url", ["sqlite:////var/own.db", "postgresql://me@host/db", "sqlite:///:memory:"])
def test_a_database_that_is_not_a_relative_path_is_left_alone(tmp_path: Path, url: str) -> None:
    assert settings_of(tmp_path, f'[assay]\ndb = "{url}"\n').db == url


def test_the_variable_goes_before_the_file(tmp_path: Path) -> None:
    assert (
        settings_of(tmp_path, '[assay]\ndb = "sqlite:///own.db"\n', ASSAY_DB="sqlite:///other.db").db
        == "sqlite:///other.db"
    )


def test_patterns_find_files_from_the_folder_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    for name in ("b.py", "a.py", "note.txt"):
        (tmp_path / "some" / name).touch()

    files = settings_of(
        tmp_path, f'[assay]\nload = ["some/*.py", "none/*.py", "{tmp_path}/some/a.py"]\n'
    ).loaded_files()

    assert [file.name for file in files] == ["a.py", "b.py", "a.py"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[assay]\nload = 5\n", ':2: assay.load: must be a list of texts. Write: ["experiments/*.py"]'),
        (
            "[assay]\ndb = 5\n",
            ':2: assay.db: must be text, the URL of a database. Write: "sqlite:///.assay/assay.db"',
        ),
        (
            "[assay]\n\ndatabase = 'x'\n",
            ":3: assay.database: is not a setting. Known: agents, db, db_retry, load, suites.",
        ),
        (
            "[assay]\nlod = []\n",
            ":2: assay.lod: is not a setting. Did you mean 'load'? Known: agents, db, db_retry, load, suites.",
        ),
        (
            "# db\n[asay]\ndb = 'x'\n",
            ":2: asay: is not a section of the settings. Did you mean 'assay'? Settings stand below [assay] or [server].",
        ),
        ("db = 'x'\n", ":1: db: is not a section of the settings. Settings stand below [assay] or [server]."),
        (
            "[server]\nport = 1\n[assay]\nport = 2\n",
            ":4: assay.port: is not a setting. Known: agents, db, db_retry, load, suites.",
        ),
        ("[assay]\ndb = \n", ":2: is not valid TOML: Invalid value."),
        ("[assay]\nload = ['gone.py']\n", ":2: assay.load: There is no file 'gone.py'."),
        (b"\xff\xfe", ": is not a file of settings: TOML in UTF-8."),
        ("a = " + "[" * 5000, ": is not a file of settings: TOML in UTF-8."),
    ],
)
def test_a_mistake_in_the_settings_is_told_with_its_line(
    tmp_path: Path, text: str | bytes, told: str
) -> None:
    assert mistakes(tmp_path, text) == [told]


def test_every_mistake_in_the_settings_is_told(tmp_path: Path) -> None:
    assert len(mistakes(tmp_path, "[assay]\ndb = 1\nload = 2\nwhat = 3\n[more]\nx = 1\n")) == 4
