"""What the test process would do again in each of the thousands of commands that it runs, and does once or briefly instead."""

from __future__ import annotations

from typing import Any

from sqlalchemy import util
from sqlalchemy.engine import Engine
from sqlalchemy.engine.default import DefaultDialect

from assay.execute.environment import environment

_PROBE_SECONDS = 0.002


def take_shortcuts() -> None:
    """A third of the time of a short run goes into probing the noise of the machine and into compiling the same SQL statements."""
    defaults: Any = environment.__kwdefaults__
    defaults["probe_seconds"] = _PROBE_SECONDS
    _share_compiled_statements()


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
