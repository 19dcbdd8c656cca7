"""Settings of a project: `assay.toml` in the nearest folder upward, else defaults in the current one."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.errors import Mistake, SpecError, did_you_mean, known_names
from assay.files import UnreadableFile, read_bytes
from assay.spec.files import matching

FILE = "assay.toml"
_MOST_BYTES = 2**20
DB_RETRY = 60.0
_KEYS = {
    "assay": {"db", "db_retry", "load", "agents", "suites"},
    "server": {"host", "port", "max_runs", "webhook"},
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Of this installation; paths in it are relative to its folder."""

    folder: Path
    db: str
    db_retry: float = DB_RETRY
    """Seconds that a run waits for a database that cannot be reached."""
    load: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    server: Mapping[str, Any] = field(default_factory=dict)

    def agent_files(self) -> list[Path]:
        return self._files("agents", self.agents)

    def suite_files(self) -> list[Path]:
        return self._files("suites", self.suites)

    def loaded_files(self) -> list[Path]:
        return self._files("load", self.load)

    def _files(self, key: str, patterns: Sequence[str]) -> list[Path]:
        """The files that a key names; a pattern may find none, a plain name must find its file."""
        found = {pattern: matching(self.folder, pattern) for pattern in patterns}
        missing = [name for name, files in found.items() if not files and not set(name) & set("*?[")]
        if missing:
            path = self.folder / FILE
            line = _line(_text(path), key, "assay")
            raise SpecError(
                [Mistake(str(path), line, f"assay.{key}", f"There is no file '{name}'.") for name in missing]
            )
        return [file for files in found.values() for file in files]


def find_settings(start: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings that hold in a folder; `ASSAY_DB` goes before the file."""
    start = start.resolve()
    folder = next((f for f in (start, *start.parents) if (f / FILE).is_file()), None)
    table = _read(folder / FILE) if folder is not None else {}
    own = table.get("assay", {})
    home = folder or start
    db = environment.get("ASSAY_DB") or _rooted(str(own.get("db", "sqlite:///.assay/assay.db")), home)
    lists = {name: tuple(own.get(name, ())) for name in ("load", "agents", "suites")}
    retry = float(own.get("db_retry", DB_RETRY))
    return Settings(home, db, retry, server=table.get("server", {}), **lists)


def _rooted(url: str, folder: Path) -> str:
    """A relative SQLite path counts from the project's folder, not from where the command was given."""
    path = url.removeprefix("sqlite:///")
    if path == url or path.startswith(("/", ":memory:")):
        return url
    return f"sqlite:///{folder / path}"


def _read(path: Path) -> dict[str, Any]:
    try:
        text = _text(path)
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError([_syntax(path, str(error))]) from None
    except (ValueError, RecursionError):
        raise SpecError([Mistake(str(path), None, "", "is not a file of settings: TOML in UTF-8.")]) from None
    mistakes = list(_mistakes(path, text, table))
    if mistakes:
        raise SpecError(mistakes)
    return table


def _text(path: Path) -> str:
    try:
        return read_bytes(path, _MOST_BYTES).decode("utf-8-sig")
    except UnreadableFile as error:
        raise SpecError([Mistake(str(path), None, "", error.problem)]) from None


def _syntax(path: Path, message: str) -> Mistake:
    """The line stands at the end of the parser's message."""
    problem, _, place = message.partition(" (at line ")
    line = place.partition(",")[0]
    return Mistake(str(path), int(line) if line.isdigit() else None, "", f"is not valid TOML: {problem}.")


def _mistakes(path: Path, text: str, table: dict[str, Any]) -> Iterator[Mistake]:
    for section, keys in table.items():
        if section not in _KEYS or not isinstance(keys, dict):
            line = _line(text, section)
            hint = f"{did_you_mean(section, _KEYS)} Settings stand below [assay] or [server].".strip()
            yield Mistake(str(path), line, section, "is not a section of the settings.", hint)
            continue
        for key, value in keys.items():
            problem, hint = _problem(section, key, value)
            if problem:
                yield Mistake(str(path), _line(text, key, section), f"{section}.{key}", problem, hint)


def _problem(section: str, key: str, value: Any) -> tuple[str, str]:
    known = _KEYS[section]
    if key not in known:
        return "is not a setting.", known_names(key, sorted(known))
    if key in ("load", "agents", "suites") and not _is_texts(value):
        return "must be a list of texts.", 'Write: ["experiments/*.py"]'
    if key == "db" and not isinstance(value, str):
        return "must be text, the URL of a database.", 'Write: "sqlite:///.assay/assay.db"'
    if key == "db_retry" and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
        return "must be a number of seconds, 0 or more.", "Write: 60"
    return "", ""


def _line(text: str, key: str, section: str | None = None) -> int | None:
    """The line of a key within its section, or of a section or key at the top."""
    current = None
    for number, line in enumerate(text.splitlines(), 1):
        heading = re.match(r"\s*\[+\s*\"?([^\]\".]+)", line)
        current = heading[1].strip() if heading else current
        named = re.match(r"\s*\"?([\w-]+)\"?\s*[=.]", line)
        if current == section and named and named[1] == key:
            return number
        if section is None and heading and current == key:
            return number
    return None


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
