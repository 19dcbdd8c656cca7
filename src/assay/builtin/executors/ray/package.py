"""The files that a plan needs, packed once for all nodes, and the paths of jobs as they are on a node.

Packed are whole folders: those of Python files that a plan imports, of agents, of files that cases name, of experiments in files, of cleanup
commands, of checkouts, the working folder if a module of it is used, and folders of PYTHONPATH that modules came from. What comes with Assay
or with an installed package is on every node already. A path that leads anywhere else is an error before the run begins.
"""

from __future__ import annotations

import io
import os
import stat
import sys
import sysconfig
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import assay
from assay.errors import PlanError
from assay.model import Job, Plan, ScorerUse
from assay.model.redaction import known_secrets
from assay.units import size

MOST_BYTES = 200 * 2**20
"""Maximum bytes of all files together: the package is copied to every node and held in memory."""
LEFT_OUT = frozenset(
    (".git", ".hg", ".venv", "venv", "__pycache__", "node_modules", ".assay", ".mypy_cache", ".pytest_cache")
)
"""Names of folders that no run needs on a node."""
SECRET_FILES = ("assay.toml", ".env*", "*.pem", "*.key")
"""Patterns of files that hold passwords and keys; what an agent needs of them it gets by variables."""


class Layout(NamedTuple):
    """Where things are on the machine that packed them: plain data that a node is sent along with the package."""

    roots: tuple[str, ...] = ()
    """The folders of the package."""
    working: str = ""
    """The working folder."""
    modules: tuple[str, ...] = ()
    """Folders of the package in which modules are looked for."""
    installed: tuple[str, ...] = ()
    """Folders of Assay and of the packages beside it; a node has its own."""


@dataclass(frozen=True, slots=True)
class Package:
    """Folders as one archive."""

    layout: Layout
    content: bytes


def pack_plan(plan: Plan) -> Package:
    """PlanError where the plan needs a file that is in none of its folders, or where the folders hold too much."""
    working = str(Path.cwd().resolve())
    roots = _find_roots(plan, working)
    _refuse_outside(plan, roots)
    content = _archive(_find_entries(roots))
    inside = FolderMap({root: root for root in roots})
    modules = tuple(folder for folder in map(os.path.abspath, sys.path) if inside.holds(folder))
    return Package(Layout(tuple(roots), working, modules, _installed()), content)


def _find_roots(plan: Plan, working: str) -> list[str]:
    """The folders to pack, none of which lies in another."""
    folders = [str(Path(file).parent) for file in plan.load]
    for trial in plan.trials:
        if trial.agent_use is not None and (trial.agent_use.folder or _names_file(trial.agent_use.options)):
            folders.append(str(Path(trial.agent_use.folder or ".").resolve()))
        if ".py::" in trial.experiment:
            folders.append(str(Path(trial.experiment.partition("::")[0]).resolve().parent))
        if trial.cleanup is not None:
            folders.append(str(Path(trial.cleanup.folder).resolve()))
    for scorer in _scorers_of(plan):
        judge = scorer.options.get("agent")
        if isinstance(judge, Mapping) and judge.get("folder"):
            folders.append(str(Path(str(judge["folder"])).resolve()))
    folders += [checkout.folder for checkout in plan.checkouts.values()]
    folders += [str(Path(file).parent) for file in _case_files_of(plan)]
    folders += _module_folders()
    if any(_is_module_of(name, working) for name in _names_of(plan)):
        folders.append(working)
    wanted = sorted({folder for folder in folders if not _is_on_every_node(folder)}, key=len)
    roots: list[str] = []
    for folder in wanted:
        if not any(_is_within(folder, root) for root in roots):
            roots.append(folder)
    return roots


def _names_of(plan: Plan) -> Iterator[str]:
    """Everything that the plan looks up by name."""
    for trial in plan.trials:
        yield trial.experiment
        yield from (use.name for use in trial.instruments)
        if trial.agent_use is not None:
            yield trial.agent_use.type
    yield from (use.name for use in _scorers_of(plan))


def _scorers_of(plan: Plan) -> Iterator[ScorerUse]:
    for benchmark in plan.suite.benchmarks if plan.suite is not None else ():
        yield from benchmark.scorers


def _case_files_of(plan: Plan) -> Iterator[str]:
    for benchmark in plan.suite.benchmarks if plan.suite is not None else ():
        for case in benchmark.cases:
            yield from case.files.values()


def _module_folders() -> Iterator[str]:
    """Folders of PYTHONPATH that modules were imported from while the plan was made: nodes may not have them."""
    for place in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        folder = os.path.realpath(place)
        files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        if any(
            file and _is_within(os.path.realpath(file), folder) and not _is_on_every_node(file)
            for file in files
        ):
            yield folder


def _is_module_of(name: str, folder: str) -> bool:
    """Whether it is `module:attribute`, and the module comes from the folder."""
    if ":" not in name or ".py:" in name:
        return False
    file = getattr(sys.modules.get(name.partition(":")[0]), "__file__", None)
    return file is not None and _is_within(os.path.realpath(file), folder) and not _is_on_every_node(file)


def _refuse_outside(plan: Plan, roots: Sequence[str]) -> None:
    """PlanError with every file that options and params name and no node would have."""
    problems: dict[str, None] = {}
    for trial in plan.trials:
        use = trial.agent_use
        folder = Path(use.folder or ".").resolve() if use is not None else Path.cwd()
        owner = f"Agent '{use.name}'" if use is not None else f"'{trial.benchmark}'"
        given = [trial.params, use.options if use is not None else {}]
        for path in _outside(given, folder, roots):
            problems[f"{owner} needs '{path}', which is not among the files that are sent to the nodes."] = (
                None
            )
    for scorer in _scorers_of(plan):
        for path in _outside(scorer.options, Path.cwd(), roots):
            problems[
                f"Scorer '{scorer.name}' needs '{path}', which is not among the files that are sent to the nodes."
            ] = None
    if problems:
        listed = "\n".join(problems)
        raise PlanError(
            f"{listed}\nMove it into the folder of the file that names it, or use --executor local. Databases, caches, virtual environments and files for "
            f"secrets ({', '.join(SECRET_FILES)}) are never sent."
        )


def _outside(value: Any, folder: Path, roots: Sequence[str]) -> Iterator[str]:
    """Texts in a value that name a file which is in none of the roots, or is left out of them."""
    for text in _texts_of(value):
        place = os.path.realpath(folder / text.partition(".py:")[0])
        root = next((root for root in roots if _is_within(place, root)), None)
        if root is not None:
            is_missing = _exists(place) and _is_left_out(place[len(root) :])
        else:
            is_there = _exists(place) or _exists(f"{place}.py")
            # A word that is also the name of a folder here, say, is no path; the name of a file with its extension is.
            is_missing = is_there and not _is_installed(place)
            if os.sep not in text:
                is_missing = is_missing and bool(Path(text).suffix) and Path(place).is_file()
        if is_missing:
            yield text


def _exists(place: str) -> bool:
    """False for a text that is too long for a name, such as a prompt, where the system refuses to look."""
    try:
        return Path(place).exists()
    except OSError:
        return False


def _texts_of(value: Any) -> Iterator[str]:
    """Texts in options and params that may be paths; those of a case or a URL are none."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _texts_of(item)
    elif (
        isinstance(value, str) and 0 < len(value) < 4096 and not any(c in value for c in ("\n", "\0", "://"))
    ):
        yield value


def _names_file(options: Mapping[str, object]) -> bool:
    """Whether an agent that was defined in no file names one of the working folder all the same."""
    return any(Path(text.partition(".py:")[0]).exists() or ".py:" in text for text in _texts_of(options))


def _is_within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def _is_installed(path: str) -> bool:
    """Whether it comes with the system, with Python, or with an installed package; every node has its own."""
    system = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/dev", "/etc", "/proc", "/sys")
    return _is_on_every_node(path) or any(
        _is_within(path, place) for place in (*system, sys.prefix, sys.base_prefix)
    )


def _is_on_every_node(path: str) -> bool:
    """Whether it comes with Assay or with an installed package."""
    return path == os.sep or any(_is_within(path, place) for place in _installed())


def _installed() -> tuple[str, ...]:
    return (str(Path(assay.__file__).parent), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))


def _is_left_out(path: str) -> bool:
    """A path within a root."""
    name = Path(path).name
    is_secret = any(fnmatchcase(name.lower(), pattern) for pattern in SECRET_FILES)
    return (
        is_secret
        or not LEFT_OUT.isdisjoint(Path(path).parts)
        or path.endswith((".pyc", ".db", ".db-wal", ".db-shm"))
    )


def _find_entries(roots: Sequence[str]) -> list[tuple[int, Path, str]]:
    """All files with the number of their root and their path in it; PlanError where they take too much."""
    entries: list[tuple[int, Path, str]] = []
    sizes = [0] * len(roots)
    for number, root in enumerate(roots):
        for file in _files_of(Path(root)):
            entries.append((number, file, str(file.relative_to(root))))
            sizes[number] += file.stat().st_size
            if sum(sizes) > MOST_BYTES:
                largest = roots[sizes.index(max(sizes))]
                raise PlanError(
                    f"The files of this run take more than {size(MOST_BYTES)}, the most that is sent to a node. "
                    f"The largest folder is '{largest}'. Keep what the run needs in a folder of its own."
                )
    return entries


def _files_of(folder: Path, above: frozenset[str] = frozenset()) -> Iterator[Path]:
    """Links are followed, as a node has nothing that they could lead to; one that leads back to where it is ends there."""
    real = os.path.realpath(folder)
    if real in above:
        return
    try:
        inside = sorted(folder.iterdir())
    except OSError as error:
        raise PlanError(f"'{folder}' cannot be sent to the nodes: {error.strerror}.") from None
    for path in inside:
        if _is_left_out(path.name):
            continue
        if path.is_dir():
            yield from _files_of(path, above | {real})
        elif path.is_file():
            yield path


def _archive(entries: Sequence[tuple[int, Path, str]]) -> bytes:
    """A tar file with a folder for each root; PlanError where a file holds a secret that is known by value."""
    target = io.BytesIO()
    secrets = [secret.encode() for secret in known_secrets().values]
    with tarfile.open(fileobj=target, mode="w:gz", compresslevel=1) as archive:
        for number, file, name in entries:
            try:
                content, mode = file.read_bytes(), file.stat().st_mode
            except OSError as error:
                raise PlanError(f"'{file}' cannot be sent to the nodes: {error.strerror}.") from None
            if any(secret in content for secret in secrets):
                raise PlanError(_explain_secret(file, content))
            item = tarfile.TarInfo(f"{number}/{name}")
            item.size, item.mode = len(content), 0o555 if mode & stat.S_IXUSR else 0o444
            archive.addfile(item, io.BytesIO(content))
    return target.getvalue()


def _explain_secret(file: Path, content: bytes) -> str:
    origin = known_secrets().origin_of_secret_in(content.decode(errors="replace"))
    return (
        f"'{file}' contains {f'the value of {origin!r}' if origin else 'a secret'} and would be sent to every node. "
        "Write ${NAME} in the options of the agent instead, or move the file to another folder."
    )


class FolderMap:
    """Folders of the driver and where they are on this node; the innermost one counts."""

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(sorted(places.items(), key=lambda item: -len(item[0])))

    def holds(self, path: str) -> bool:
        return any(_is_within(path, origin) for origin in self._places)

    def translate(self, path: str) -> str:
        """
        >>> FolderMap({"/suites/sums": "/node/0"}).translate("/suites/sums/agents.py:fast")
        '/node/0/agents.py:fast'
        """
        for origin, here in self._places.items():
            if _is_within(path, origin):
                return here + path[len(origin) :]
        return path

    def translate_all(self, value: Any) -> Any:
        """The same for all texts in options and params."""
        if isinstance(value, str):
            return self.translate(value)
        if isinstance(value, Mapping):
            return {key: self.translate_all(item) for key, item in value.items()}
        return [self.translate_all(item) for item in value] if isinstance(value, list | tuple) else value

    def move_job(self, job: Job) -> Job:
        """The job with every path as it is on this node."""
        agent, cleanup, checkout = job.agent, job.cleanup, job.checkout
        if agent is not None:
            agent = replace(
                agent, folder=self.translate(agent.folder), options=self.translate_all(agent.options)
            )
        if cleanup is not None:
            cleanup = replace(cleanup, folder=self.translate(cleanup.folder))
        if checkout is not None:
            checkout = replace(checkout, folder=self.translate(checkout.folder))
        return replace(
            job,
            agent=agent,
            cleanup=cleanup,
            checkout=checkout,
            experiment=self.translate(job.experiment),
            load=tuple(map(self.translate, job.load)),
            cases=tuple(
                replace(case, files=self.translate_all(case.files)) if case.files else case
                for case in job.cases
            ),
            params=self.translate_all(job.params),
            scorers=tuple(replace(use, options=self.translate_all(use.options)) for use in job.scorers),
        )


def unpack(content: bytes, layout: Layout, folder: Path) -> FolderMap:
    """Unpack into a new folder, read-only, and make modules of the package importable; returns where its folders are now."""
    folder.mkdir()
    if content:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            archive.extractall(folder, filter="data")
    places = {root: str(folder / str(number)) for number, root in enumerate(layout.roots)}
    for place in places.values():
        Path(place).mkdir(exist_ok=True)
    for parent, _, names in os.walk(folder):
        for name in names:
            file = Path(parent, name)
            file.chmod(0o555 if file.stat().st_mode & stat.S_IXUSR else 0o444)
        Path(parent).chmod(0o555)
    found = FolderMap({**dict(zip(layout.installed, _installed(), strict=False)), **places})
    sys.path += [place for place in map(found.translate, layout.modules) if place not in sys.path]
    return found
