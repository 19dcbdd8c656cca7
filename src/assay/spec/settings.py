"""Settings of a project: `assay.toml` in the current folder or the nearest one above it, otherwise defaults.

The settings name the database and the files whose agents, suites and experiments are known by name. Every command reads them first,
so this module imports neither pydantic nor PyYAML.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

from assay.errors import Mistake, SpecError, did_you_mean, known_names
from assay.files import UnreadableFile, read_bytes
from assay.plugin import lookup
from assay.spec.files import match_files

FILE = "assay.toml"
_MOST_BYTES = 2**20
DB_RETRY = 60.0
_KEYS = {
    "assay": {"db", "db_retry", "workspace", "load", "agents", "suites"},
    "server": {
        "host",
        "port",
        "max_runs",
        "max_queue",
        "sync_seconds",
        "agent_options",
        "rate",
        "webhook",
        "timezone",
    },
}
_LEAST_1 = {"max_runs": 2, "max_queue": 100, "rate": 100}
"""Settings that are whole numbers, 1 or more, with their defaults."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a project; paths and patterns in it count from `folder`."""

    folder: Path
    db: str
    db_retry: float = DB_RETRY
    """Seconds that a run waits for a database that cannot be reached."""
    workspace: str | None = None
    """The part of the database that commands read and write; None is the one that every database has."""
    load: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    server: Mapping[str, Any] = field(default_factory=dict)
    """Settings of `assay serve`, checked like all others."""
    executors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings of executors, by name: the sections that are called like one. The executor itself checks them."""

    @property
    def zone(self) -> tzinfo:
        """The time zone of schedules."""
        name = self.server.get("timezone", "UTC")
        if name == "UTC":
            return UTC
        from zoneinfo import ZoneInfo

        return ZoneInfo(name)

    def agent_files(self) -> list[Path]:
        return self._files("agents", self.agents)

    def suite_files(self) -> list[Path]:
        return self._files("suites", self.suites)

    def files_to_load(self) -> list[Path]:
        return self._files("load", self.load)

    def _files(self, key: str, patterns: Sequence[str]) -> list[Path]:
        """The files that a key names; a pattern may find none, a plain name must find its file."""
        matches = {pattern: match_files(self.folder, pattern) for pattern in patterns}
        missing = [name for name, files in matches.items() if not files and not set(name) & set("*?[")]
        if missing:
            path = self.folder / FILE
            line = _line(_text(path), key, "assay")
            raise SpecError(
                [Mistake(str(path), line, f"assay.{key}", f"There is no file '{name}'.") for name in missing]
            )
        return [file for files in matches.values() for file in files]


def find_settings(start: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings that hold in a folder; the environment variables `ASSAY_DB` and `ASSAY_WORKSPACE` override the file."""
    # Up to the root, as git and pytest look for theirs, so that commands work in every folder of a project.
    start = start.resolve()
    folder = next((f for f in (start, *start.parents) if (f / FILE).is_file()), None)
    table = _read(folder / FILE) if folder is not None else {}
    own = table.get("assay", {})
    home = folder or start
    db = str(own.get("db", "sqlite:///.assay/assay.db"))
    path = db.removeprefix("sqlite:///")
    if path != db and not path.startswith(("/", ":memory:")):
        # A relative SQLite path counts from the project's folder, not from where the command was given: otherwise every
        # subfolder would get a database of its own.
        db = f"sqlite:///{home / path}"
    db = environment.get("ASSAY_DB") or db
    lists = {name: tuple(own.get(name, ())) for name in ("load", "agents", "suites")}
    retry = float(own.get("db_retry", DB_RETRY))
    workspace = environment.get("ASSAY_WORKSPACE") or own.get("workspace")
    executors = {name: keys for name, keys in table.items() if name not in _KEYS}
    return Settings(home, db, retry, workspace, server=table.get("server", {}), executors=executors, **lists)


def _read(path: Path) -> dict[str, Any]:
    """The tables of the file, with every key known and every value of the right type; SpecError with every mistake otherwise."""
    try:
        text = _text(path)
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # The line stands at the end of the parser's message.
        problem, _, place = str(error).partition(" (at line ")
        line = place.partition(",")[0]
        number = int(line) if line.isdigit() else None
        raise SpecError([Mistake(str(path), number, "", f"is not valid TOML: {problem}.")]) from None
    except (ValueError, RecursionError):
        raise SpecError([Mistake(str(path), None, "", "is not a settings file (TOML in UTF-8).")]) from None
    mistakes = list(_mistakes(path, text, table))
    if mistakes:
        raise SpecError(mistakes)
    return table


def _text(path: Path) -> str:
    try:
        return read_bytes(path, _MOST_BYTES).decode("utf-8-sig")
    except UnreadableFile as error:
        raise SpecError([Mistake(str(path), None, "", error.problem)]) from None


def _mistakes(path: Path, text: str, table: dict[str, Any]) -> Iterator[Mistake]:
    """Every mistake of the file at once. An unknown key is one, because a misspelt setting would silently have no effect."""
    for section, keys in table.items():
        if section not in _KEYS and isinstance(keys, dict) and section in lookup.known("executors"):
            continue
        if section not in _KEYS or not isinstance(keys, dict):
            line = _line(text, section)
            hint = f"{did_you_mean(section, _KEYS)} Settings go under [assay], [server] or the name of an executor.".strip()
            yield Mistake(str(path), line, section, "is not a section of the settings.", hint)
            continue
        for key, value in keys.items():
            problem, hint = _problem(section, key, value)
            if problem:
                yield Mistake(str(path), _line(text, key, section), f"{section}.{key}", problem, hint)


def _problem(section: str, key: str, value: Any) -> tuple[str, str]:
    """What is wrong with one setting and a hint; both are empty where nothing is."""
    known = _KEYS[section]
    if key not in known:
        return "is not a setting.", known_names(key, sorted(known))
    is_list_of_texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    if key in ("load", "agents", "suites") and not is_list_of_texts:
        return "must be a list of strings.", 'Write: ["experiments/*.py"]'
    if key == "agent_options" and not is_list_of_texts:
        return "must be a list of strings, the options that requests may set.", 'Write: ["temperature"]'
    if key == "db" and not isinstance(value, str):
        return "must be text, the URL of a database.", 'Write: "sqlite:///.assay/assay.db"'
    if key == "workspace" and not (isinstance(value, str) and value):
        return "must be text, the name of a workspace.", 'Write: "default"'
    if key == "db_retry" and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
        return "must be a number of seconds, 0 or more.", "Write: 60"
    if key == "host" and not (isinstance(value, str) and value):
        return "must be text, the address to listen on.", 'Write: "127.0.0.1"'
    if key == "port" and not _is_whole(value, 1, 65535):
        return "must be a whole number from 1 to 65535.", "Write: 8765"
    if key in _LEAST_1 and not _is_whole(value, 1):
        return "must be a whole number of at least 1.", f"Write: {_LEAST_1[key]}"
    if key == "sync_seconds" and not _is_whole(value, 0, 3600):
        return "must be a whole number of seconds, 0 to 3600.", "Write: 60"
    if key == "webhook" and not (isinstance(value, str) and value.startswith(("http://", "https://", "${"))):
        return "must be a URL, or a variable that holds one.", 'Write: "${ALERT_URL}"'
    if key == "timezone" and not _is_zone(value):
        return "must be the name of a time zone.", 'Write: "Europe/Berlin"'
    return "", ""


def _is_zone(value: Any) -> bool:
    from zoneinfo import ZoneInfo

    try:
        return isinstance(value, str) and ZoneInfo(value) is not None
    except (ValueError, LookupError, OSError):
        return False


def _is_whole(value: Any, least: int, most: float = math.inf) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _line(text: str, key: str, section: str | None = None) -> int | None:
    """The line of a key within its section, or of a section or key at the top.

    The standard library's parser keeps no lines. The file is a page of flat keys, so a search by pattern finds them; where it
    does not, as in an inline table, the message goes without a line.
    """
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
