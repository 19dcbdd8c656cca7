"""A name finds a plug-in: registered by a decorator, an entry point, or written as "module:attribute".

Nothing is imported before it is named, so a missing optional package never breaks a listing.

`find` looks in this order: what was registered in this process, the entry points of installed distributions, then names that
say themselves where to look (`file.py::name`, `<session>:name`, `module:attribute`), and last what a loaded file defines
under that name. Code of the user is imported with its output sent to standard error and after a trial import in another
process (`import_check`), because a module may exit, crash or hang while it is imported.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from assay.errors import LookupFailed, MissingExtra, format_unknown_name
from assay.plugin.entry_points import EntryPoint, entry_points
from assay.plugin.import_check import ImportEnded, check_import, check_module
from assay.plugin.output import printing_to_stderr
from assay.plugin.session import SESSION, find_session_function

KINDS = (
    "agents",
    "experiments",
    "findings",
    "instruments",
    "scorers",
    "executors",
    "reporters",
    "scenarios",
    "sandboxes",
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a plug-in: a distribution or an imported file."""

    name: str
    origin: str
    target: str


@dataclass(frozen=True, slots=True)
class _Registered:
    member: Any
    file: str


_registered: dict[str, dict[str, _Registered]] = {kind: {} for kind in KINDS}
"""By kind and name; a later registration replaces an earlier one."""
_loaded: dict[Path, ModuleType] = {}
"""Files that were loaded by path, in their order; each is run once in a process."""
_defined_in: dict[str, dict[tuple[str, str], _Registered]] = {}
"""By file: all that it registered, so that loading it again puts its names first again."""
_importing: list[str] = []
"""Files and modules that are being imported at this moment, the innermost last."""


def register(kind: str, name: str, member: T) -> T:
    """Make a member known by name in this process; the latest of a name counts."""
    # The file in which the decorator stands, whichever module imports it.
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("assay."):
        frame = frame.f_back
    file = str(frame.f_globals.get("__file__") or frame.f_globals.get("__name__", "?"))
    entry = _Registered(member, file)
    _registered[kind][name] = entry
    _defined_in.setdefault(entry.file, {})[kind, name] = entry
    return member


def register_experiment(slug: str) -> Callable[[T], T]:
    """Class decorator: make an experiment known by its slug."""
    return lambda member: register("experiments", slug, member)


def find(kind: str, name: str) -> Any:
    """The member of that name; LookupFailed lists the known ones and the nearest."""
    if (member := _find_member(kind, name)) is None:
        raise LookupFailed(format_unknown_name(name, kind, known(kind)))
    return member


def find_available(kind: str, name: str) -> Any:
    """The member of that name; None where it is unknown or lacks a package.

    For stored results, whose plug-ins may be gone. Looking for similar names takes long, so it is left to `find`.
    """
    try:
        return _find_member(kind, name)
    except (LookupFailed, MissingExtra):
        return None


def _find_member(kind: str, name: str) -> Any:
    if name in _registered[kind]:
        return _registered[kind][name].member
    if name in (points := _entry_points(kind)):
        return _import(points[name].value, kind, name)
    if ".py::" in name:
        return _in_file(kind, name)
    if name.startswith(f"{SESSION}:"):
        return find_session_function(name.removeprefix(f"{SESSION}:"))
    if ":" in name:
        return _import(name, kind, name)
    return _find_in_loaded_files(kind, name)


def is_known(kind: str, name: str) -> bool:
    """Whether `find` would find it, without importing anything."""
    return name in known(kind) or _find_in_loaded_files(kind, name) is not None


def _find_in_loaded_files(kind: str, name: str) -> Any:
    """What a loaded file defines is known by its own name, also without a decorator."""
    members = (getattr(module, name, None) for module in reversed(_loaded.values()))
    return next((member for member in members if _is_of_kind(kind, member)), None)


def _is_of_kind(kind: str, member: Any) -> bool:
    """Whether something looks like a plug-in of that kind; files also define helpers, which must not be taken for one."""
    if kind == "experiments":
        is_class = isinstance(member, type) and callable(getattr(member, "execute_once", None))
        return is_class or hasattr(member, "bound")
    if kind == "agents":
        return isinstance(member, type) and callable(getattr(member, "answer", None))
    return kind in ("instruments", "reporters", "scorers") and callable(member)


def find_file_of_function(name: str) -> Path | None:
    """The latest loaded file that defines a plain function of that name."""
    return next(
        (
            path
            for path, module in reversed(_loaded.items())
            if isinstance(function := getattr(module, name, None), FunctionType)
            and function.__module__ == module.__name__
        ),
        None,
    )


def known(kind: str) -> list[str]:
    """Names of a kind (`agents`, `scorers`, …) that are registered or installed, without importing any."""
    return sorted({*_registered[kind], *_entry_points(kind)})


def sources(kind: str) -> Iterator[Source]:
    """Every known member with where it comes from, without importing any."""
    points = _entry_points(kind)
    for name in known(kind):
        here, point = _registered[kind].get(name), points.get(name)
        member = None if here is None else here.member
        target = f"{getattr(member, '__module__', '')}:{getattr(member, '__qualname__', '')}"
        if here is not None and (point is None or point.value != target):
            yield Source(name, here.file, getattr(member, "__qualname__", ""))
        else:
            yield Source(name, points[name].distribution, points[name].value)


def load_file(path: Path) -> ModuleType:
    """Import a Python file by its path, once; what it registers is known, and goes before what others registered."""
    path = path.resolve()
    if path not in _loaded:
        if str(path.parent) not in sys.path:
            sys.path.insert(0, str(path.parent))
        # A file that another one has imported is not run a second time.
        module = sys.modules.get(path.stem)
        is_imported = module is not None and getattr(module, "__file__", None) == str(path)
        _loaded[path] = module if module and is_imported else _execute_file(_module_name(path), path)
    for (kind, name), entry in _defined_in.get(str(path), {}).items():
        _registered[kind][name] = entry
    return _loaded[path]


@contextmanager
def importing(name: str) -> Iterator[None]:
    """While user code is imported by Assay: a script without a `__main__` guard must not start another run."""
    _importing.append(name)
    try:
        yield
    finally:
        _importing.pop()


def file_being_imported() -> str | None:
    return _importing[-1] if _importing else None


def _module_name(path: Path) -> str:
    """The file's own name, as `import` would have it; another where that is taken."""
    if path.stem not in sys.modules:
        return path.stem
    from hashlib import sha256

    return f"{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"


def _execute_file(module_name: str, path: Path) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    if not path.exists():
        raise LookupFailed(f"There is no file '{path}'.")
    spec = spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise LookupFailed(f"'{path}' is not a Python file.")
    # Compiled each time: Python takes bytecode for current if the size of the file and the second of its last change are the same,
    # so a change right after a run would not be measured.
    loader: Any = spec.loader
    loader.get_code = lambda _: loader.source_to_code(loader.get_data(str(path)), str(path))
    module = module_from_spec(spec)
    sys.modules[module_name] = module
    execute = partial(loader.exec_module, module)
    with importing(str(path)):
        try:
            check_import(f"'{path}'", execute)
            with printing_to_stderr():
                execute()
        except (KeyboardInterrupt, ImportEnded):
            del sys.modules[module_name]
            raise
        except BaseException as error:
            del sys.modules[module_name]
            raise LookupFailed(f"'{path}' cannot be imported: {_format_error(error, str(path))}") from error
    return module


def _format_error(error: BaseException, file: str | None = None) -> str:
    """The error and the line of the file that it came from."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}."
    if isinstance(error, SystemExit):
        error = RuntimeError(f"it calls sys.exit({error.code!r})")
    from traceback import extract_tb

    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == file]
    where = f"line {lines[-1]}: " if lines else ""
    cure = (
        f" Install it: {_install_command(error.name)}"
        if isinstance(error, ModuleNotFoundError) and error.name
        else ""
    )
    return f"{where}{type(error).__name__}: {error}.{cure}"


def find_registered_names(path: Path, kind: str) -> list[str]:
    """Names that this file registers, in its order."""
    return [name for of, name in _defined_in.get(str(path.resolve()), {}) if of == kind]


def _in_file(kind: str, name: str) -> Any:
    file, _, attribute = name.partition("::")
    module = load_file(Path(file))
    here = _defined_in.get(str(Path(file).resolve()), {})
    if (kind, attribute) in here:
        return here[kind, attribute].member
    if attribute and hasattr(module, attribute):
        return getattr(module, attribute)
    raise LookupFailed(
        format_unknown_name(attribute, f"{kind} of '{file}'", find_registered_names(Path(file), kind))
    )


def _entry_points(kind: str) -> dict[str, EntryPoint]:
    return entry_points().get(f"assay.{kind}", {})


def _import(target: str, kind: str, name: str) -> Any:
    module_name, _, attribute = target.partition(":")
    member: Any = _module(module_name, kind, name)
    try:
        for part in attribute.split("."):
            member = getattr(member, part)
    except AttributeError:
        raise LookupFailed(f"Module '{module_name}' has no '{attribute}', which '{name}' names.") from None
    return member


def _module(module_name: str, kind: str, name: str) -> ModuleType:
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise LookupFailed(
            f"'{name}' does not name one of the {kind}. Write a name, module:attribute or file.py::name."
        )
    try:
        with importing(module_name):
            if ":" in name:  # written by the user; what an installed distribution registers has a plain name
                check_module(module_name)
            with printing_to_stderr():
                return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        absent = error.name or "?"
        if absent == module_name or module_name.startswith(absent + "."):
            problem = f"'{name}' cannot be imported: there is no module '{absent}'."
            raise LookupFailed(problem) from error
        problem = f"'{name}' needs the package '{absent}': {_install_command(absent)}"
        raise MissingExtra(problem) from error
    except (KeyboardInterrupt, ImportEnded):
        raise
    except BaseException as error:
        raise LookupFailed(f"Module '{module_name}' cannot be imported: {_format_error(error)}") from error


_EXTRAS = {
    "pynvml": "gpu",
    "psycopg": "postgres",
    "jsonschema": "json",
    "xllamacpp": "local-llm",
    "tokenizers": "tokenizer",
    "scipy": "simulation",
    "redis": "redis",
}


def _install_command(package: str) -> str:
    extra = _EXTRAS.get(package)
    return f"pip install 'assay-bench[{extra}]'" if extra else f"pip install {package}"
