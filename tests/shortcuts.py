"""What the test process would do again in each of the thousands of commands that it runs, and does once or briefly instead."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import util
from sqlalchemy.engine import Engine
from sqlalchemy.engine.default import DefaultDialect

from assay.errors import StoreError
from assay.execute.environment import environment
from assay.plugin.private_files import make_folder, write_private
from assay.store.address import read_address
from assay.store.store import Store

_PROBE_SECONDS = 0.002


def take_shortcuts() -> None:
    """Half of the time of a short run goes into probing the noise of the machine, into compiling the same SQL statements and
    into making the same empty database."""
    defaults: Any = environment.__kwdefaults__
    defaults["probe_seconds"] = _PROBE_SECONDS
    _share_compiled_statements()
    _copy_new_databases()


def _share_compiled_statements() -> None:
    """SQLAlchemy keeps compiled statements for each engine, and every command makes an engine. What was compiled
    for one of them serves all others with an equal dialect."""
    compiled = util.LRUCache[Any, Any](2000)
    begin = Engine.__init__

    def begin_with_shared_statements(engine: Engine, *args: Any, **keys: Any) -> None:
        begin(engine, *args, **keys)
        engine._compiled_cache = compiled

    Engine.__init__ = begin_with_shared_statements  # type: ignore[assignment, method-assign]
    DefaultDialect.__eq__ = lambda one, other: _traits(one) == _traits(other)  # type: ignore[method-assign]
    DefaultDialect.__hash__ = lambda dialect: hash(type(dialect))  # type: ignore[assignment, method-assign]


def _traits(dialect: object) -> tuple[object, ...]:
    """What a compiled statement depends on."""
    return type(dialect), *(getattr(dialect, name, None) for name in ("paramstyle", "_json_serializer"))


def _copy_new_databases() -> None:
    """A SQLite file that does not exist yet begins as a copy of an empty database that was made once. It appears whole or not
    at all, so processes that open the same new file at once find one database, as they do without the copy."""
    open_really = Store.open.__func__  # type: ignore[attr-defined]
    empty = cache(partial(_make_empty_database, open_really))

    def open_copy(store: type[Store], /, url: str, **keys: Any) -> Store:
        # The store itself tells what is wrong with an address, a folder or a disk.
        with suppress(StoreError, OSError):
            address = read_address(url)
            file = address.file
            if file and not file.exists() and not (address.url.host or address.url.query):
                make_folder(file.parent)
                _put(empty(), file)
        return open_really(store, url, **keys)  # type: ignore[no-any-return]

    Store.open = classmethod(open_copy)  # type: ignore[method-assign, assignment]


def _make_empty_database(open_really: Callable[..., Store]) -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "empty.db"
        open_really(Store, f"sqlite:///{file}").close()
        return file.read_bytes()


def _put(content: bytes, file: Path) -> None:
    """Write beside the file, under a name of its own, and link it there unless another process was quicker."""
    beside = file.with_name(f"{secrets.token_hex(8)}.new")
    try:
        write_private(beside, content)
        os.link(beside, file)
    finally:
        beside.unlink(missing_ok=True)
