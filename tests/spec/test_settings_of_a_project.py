"""`assay.toml` holds for its folder and all below."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.wording import Wording

from assay.errors import Mistake, SpecError
from assay.spec.settings import find_settings


def settings_of(folder: Path, text: str | bytes, **environment: str):
    (folder / "assay.toml").write_bytes(text.encode() if isinstance(text, str) else text)
    return find_settings(folder, environment)


def mistakes(folder: Path, text: str | bytes) -> tuple[Mistake, ...]:
    with pytest.raises(SpecError) as error:
        settings_of(folder, text).files_to_load()
    return error.value.mistakes


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
    text = f'[assay]\ndb = "{url}"\n'
    assert settings_of(tmp_path, text).db == url


def test_the_variable_goes_before_the_file(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, '[assay]\ndb = "sqlite:///own.db"\n', ASSAY_DB="sqlite:///other.db")
    assert settings.db == "sqlite:///other.db"


def test_patterns_find_files_from_the_folder_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    for name in ("b.py", "a.py", "note.txt"):
        (tmp_path / "some" / name).touch()

    files = settings_of(
        tmp_path, f'[assay]\nload = ["some/*.py", "none/*.py", "{tmp_path}/some/a.py"]\n'
    ).files_to_load()

    assert [file.name for file in files] == ["a.py", "b.py", "a.py"]


@pytest.mark.parametrize(
    ("text", "line", "key", "names"),
    [
        ("[assay]\nload = 5\n", 2, "assay.load", '["experiments/*.py"]'),
        ("[assay]\ndb = 5\n", 2, "assay.db", '"sqlite:///.assay/assay.db"'),
        ("[assay]\n\ndatabase = 'x'\n", 3, "assay.database", "agents db db_retry load suites"),
        ("[assay]\nlod = []\n", 2, "assay.lod", "'load' agents db db_retry load suites"),
        ("# db\n[asay]\ndb = 'x'\n", 2, "asay", "'assay' [assay] [server]"),
        ("db = 'x'\n", 1, "db", "[assay] [server]"),
        ("[server]\nport = 1\n[assay]\nport = 2\n", 4, "assay.port", "agents db db_retry load suites"),
        ("[server]\nhost = 1\n", 2, "server.host", '"127.0.0.1"'),
        ("[server]\nport = '8765'\n", 2, "server.port", "65535 8765"),
        ("[server]\nport = 70000\n", 2, "server.port", "65535 8765"),
        ("[server]\n\nmax_runs = 0\n", 3, "server.max_runs", "1"),
        ("[server]\nmax_runs = true\n", 2, "server.max_runs", "1"),
        ("[server]\nwebhook = 'nowhere'\n", 2, "server.webhook", '"${ALERT_URL}"'),
        ("[server]\ntimezone = 'Europe/Bern'\n", 2, "server.timezone", '"Europe/Berlin"'),
        ("[server]\ntimezone = '../UTC'\n", 2, "server.timezone", ""),
        ("[server]\nprot = 1\n", 2, "server.prot", "'port' host max_runs port webhook"),
        ("[assay]\ndb = \n", 2, "", "TOML"),
        ("[assay]\nload = ['gone.py']\n", 2, "assay.load", "'gone.py'"),
        (b"\xff\xfe", None, "", "TOML UTF-8"),
        pytest.param("a = " + "[" * 5000, None, "", "TOML UTF-8", id="deeply nested"),
    ],
)
def test_a_mistake_in_the_settings_is_reported_with_its_line(
    tmp_path: Path, wording: Wording, text: str | bytes, line: int | None, key: str, names: str
) -> None:
    [found] = mistakes(tmp_path, text)

    assert (found.file, found.line, found.key) == (str(tmp_path / "assay.toml"), line, key)
    told = f"{found.problem} {found.hint}"
    assert [name for name in names.split() if name not in told] == []
    wording(found)


def test_settings_of_the_server_are_accepted(tmp_path: Path) -> None:
    text = '[server]\nhost = "127.0.0.1"\nport = 8765\nmax_runs = 2\nwebhook = "${ALERT_URL}"\n'
    assert settings_of(tmp_path, text).server["port"] == 8765


def test_every_mistake_in_the_settings_is_reported(tmp_path: Path) -> None:
    found = mistakes(tmp_path, "[assay]\ndb = 1\nload = 2\nwhat = 3\n[more]\nx = 1\n")
    assert len(found) == 4
