"""Settings of a project: `assay.toml` in the nearest folder upward, else defaults in the current one."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.errors import Mistake, SpecError, did_you_mean

FILE = "assay.toml"
_KEYS = {"assay": {"db", "load", "agents", "suites"}, "server": {"host", "port", "max_runs", "webhook"}}


@dataclass(frozen=True, slots=True)
class Settings:
    """Of this installation; paths in it are relative to its folder."""

    folder: Path
    db: str
    load: tuple[str, ...] = ()
    server: Mapping[str, Any] = field(default_factory=dict)

    def loaded_files(self) -> list[Path]:
        return [file for pattern in self.load for file in sorted(self.folder.glob(pattern))]


def find_settings(start: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings that hold in a folder; `ASSAY_DB` goes before the file."""
    start = start.resolve()
    folder = next((f for f in (start, *start.parents) if (f / FILE).is_file()), None)
    table = _read(folder / FILE) if folder is not None else {}
    own = table.get("assay", {})
    home = folder or start
    db = environment.get("ASSAY_DB") or _rooted(str(own.get("db", "sqlite:///.assay/assay.db")), home)
    return Settings(home, db, tuple(own.get("load", ())), table.get("server", {}))


def _rooted(url: str, folder: Path) -> str:
    """A relative SQLite path counts from the project's folder, not from where the command was given."""
    path = url.removeprefix("sqlite:///")
    if path == url or path.startswith(("/", ":memory:")):
        return url
    return f"sqlite:///{folder / path}"


def _read(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError([Mistake(str(path), None, "", f"is not valid TOML: {error}")]) from None
    except OSError as error:
        raise SpecError([Mistake(str(path), None, "", f"cannot be read: {error.strerror}.")]) from None
    mistakes = list(_mistakes(path, table))
    if mistakes:
        raise SpecError(mistakes)
    return table


def _mistakes(path: Path, table: dict[str, Any]) -> list[Mistake]:
    lines = path.read_text(encoding="utf-8").splitlines()

    def at(key: str, problem: str, known: Any) -> Mistake:
        line = next(
            (i for i, text in enumerate(lines, 1) if text.strip().lstrip("[").startswith(key.split(".")[-1])),
            None,
        )
        return Mistake(str(path), line, key, problem, did_you_mean(key.split(".")[-1], known))

    found = []
    for section, keys in table.items():
        if section not in _KEYS or not isinstance(keys, dict):
            found.append(at(section, "is not a section of the settings.", _KEYS))
            continue
        for key, value in keys.items():
            if key not in _KEYS[section]:
                found.append(at(f"{section}.{key}", "is not a setting.", _KEYS[section]))
            elif key in ("load", "agents", "suites") and not _is_texts(value):
                found.append(at(f"{section}.{key}", "must be a list of texts.", ()))
            elif key == "db" and not isinstance(value, str):
                found.append(at(f"{section}.{key}", "must be a text, the URL of a database.", ()))
    return found


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
