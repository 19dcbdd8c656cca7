"""A name finds a plug-in: registered by a decorator, an entry point, or written as "module:attribute".

Nothing is imported before it is named, so a missing optional package never breaks a listing.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from assay.errors import LookupFailed, MissingExtra, no_such

KINDS = ("agents", "experiments", "instruments", "scorers", "executors", "reporters")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a plug-in comes from: a distribution, or a file that was loaded."""

    name: str
    origin: str
    target: str


_registered: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
_origins: dict[tuple[str, str], str] = {}
_loading: list[str] = []
_loaded: dict[Path, ModuleType] = {}


def register(kind: str, name: str, member: T) -> T:
    """Make a member known by name in this process."""
    _registered[kind][name] = member
    _origins[kind, name] = _loading[-1] if _loading else getattr(member, "__module__", "?")
    return member


def register_experiment(slug: str) -> Callable[[T], T]:
    """Class decorator: make an experiment known by its slug."""
    return lambda member: register("experiments", slug, member)


def find(kind: str, name: str) -> Any:
    """The member of that name; LookupFailed lists the known ones and the nearest."""
    if name in _registered[kind]:
        return _registered[kind][name]
    if name in (points := _entry_points(kind)):
        return _import(points[name].value, kind, name)
    if ".py::" in name:
        return _in_file(kind, name)
    if ":" in name:
        return _import(name, kind, name)
    if (plain := _defined(kind, name)) is not None:
        return plain
    raise LookupFailed(no_such(name, kind, known(kind)))


def _defined(kind: str, name: str) -> Any:
    """Instruments and reporters may be plain functions of a loaded file, known by their own names."""
    if kind not in ("instruments", "reporters"):
        return None
    return next(
        (found for module in _loaded.values() if callable(found := getattr(module, name, None))), None
    )


def known(kind: str) -> list[str]:
    return sorted({*_registered[kind], *_entry_points(kind)})


def sources(kind: str) -> Iterator[Source]:
    """Every known member with where it comes from, without importing any."""
    points = _entry_points(kind)
    for name in known(kind):
        if name in _registered[kind]:
            yield Source(name, _origins[kind, name], getattr(_registered[kind][name], "__qualname__", ""))
        else:
            yield Source(name, _distribution(points[name]), points[name].value)


def load_file(path: Path) -> ModuleType:
    """Import a Python file by its path, once; what it registers carries the file as origin."""
    path = path.resolve()
    if path not in _loaded:
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))
        _loaded[path] = _execute_file(_module_name(path), path)
    return _loaded[path]


def _module_name(path: Path) -> str:
    """The file's own name, as `import` would have it; another where that is taken."""
    if path.stem not in sys.modules:
        return path.stem
    from hashlib import sha256

    return f"{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"


def _execute_file(module_name: str, path: Path) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise LookupFailed(f"'{path}' is not a Python file that can be loaded.")
    module = module_from_spec(spec)
    sys.modules[module_name] = module
    _loading.append(str(path))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module_name]
        raise LookupFailed(f"'{path}' cannot be loaded: {type(error).__name__}: {error}") from error
    finally:
        _loading.pop()
    return module


def registered_in(path: Path, kind: str) -> list[str]:
    """Names that loading this file registered."""
    origin = str(path.resolve())
    return [name for (of, name), where in _origins.items() if of == kind and where == origin]


def _in_file(kind: str, name: str) -> Any:
    file, _, attribute = name.partition("::")
    module = load_file(Path(file))
    if attribute in _registered[kind]:
        return _registered[kind][attribute]
    if hasattr(module, attribute):
        return getattr(module, attribute)
    here = registered_in(Path(file), kind)
    raise LookupFailed(no_such(attribute, f"{kind} of '{file}'", here))


@cache
def _entry_points(kind: str) -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=f"assay.{kind}")}


def _distribution(point: Any) -> str:
    return point.dist.name if point.dist else "?"


def _import(target: str, kind: str, name: str) -> Any:
    module_name, _, attribute = target.partition(":")
    try:
        member: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            member = getattr(member, part)
    except ModuleNotFoundError as error:
        raise _missing(error, kind, name, module_name) from error
    except AttributeError as error:
        raise LookupFailed(f"Module '{module_name}' has no '{attribute}', which '{name}' names.") from error
    return member


_EXTRAS = {"pynvml": "gpu", "psycopg": "postgres", "ray": "ray"}


def _missing(error: ModuleNotFoundError, kind: str, name: str, module_name: str) -> Exception:
    absent = error.name or "?"
    if absent == module_name or module_name.startswith(absent + "."):
        return LookupFailed(f"There is no module '{absent}', which '{name}' among the {kind} names.")
    extra = _EXTRAS.get(absent)
    cure = f"pip install 'assay[{extra}]'" if extra else f"pip install {absent}"
    return MissingExtra(f"'{name}' among the {kind} needs the package '{absent}': {cure}")
