"""`assay plugin`: start a package that adds plug-ins to Assay.

The templates in `plugin_template` are working code with passing tests, not fragments: our own tests install what this command
writes and use it, so a change of a contract that would break other people's plug-ins breaks ours first.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from assay.cli.output import echo, style_text
from assay.cli.session import Session, common
from assay.text import quote_word

KINDS = (
    "agent",
    "scorer",
    "instrument",
    "experiment",
    "finding",
    "scenario",
    "reporter",
    "executor",
    "sandbox",
)
"""Each is also the name of its template; `group_of` gives the plural."""

_TEMPLATE = Path(__file__).parent / "plugin_template"
_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")


@click.group()
def plugin() -> None:
    """Write plug-ins: your own agents, scorers, instruments, experiments, findings, scenarios and reporters."""


@plugin.command("new")
@click.argument("name")
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(KINDS),
    multiple=True,
    default=["agent"],
    show_default=True,
    help="What the plug-in is; repeat it for several in one package.",
)
@click.option(
    "--out",
    metavar="FOLDER",
    default=".",
    type=click.Path(path_type=Path, file_okay=False),
    help="Create the package's folder here; default: the current folder.",
)
@common
def new(session: Session, name: str, kinds: tuple[str, ...], out: Path) -> None:
    """Write a package with a working plug-in, its entry point, a README and tests that pass.

    \b
    assay plugin new my-scorer --kind scorer
    assay plugin new my-tools --kind agent --kind instrument --out plugins
    """
    from assay.errors import AssayError
    from assay.plugin.private_files import make_folder

    _check_name(name, kinds)
    folder = out / name
    if folder.exists():
        raise AssayError(f"'{folder}' already exists. Choose another name, or another folder with --out.")
    files = build_files(name, kinds)
    try:
        for path, text in files.items():
            make_folder((folder / path).parent)
            (folder / path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise AssayError(f"'{folder}' cannot be written: {error.strerror}.") from None
    path_text = quote_word(str(folder))
    steps = (f"pip install -e {path_text}", f"assay list {group_of(kinds[0])}", f"pytest {path_text}")
    if session.is_json:
        session.emit({"folder": str(folder), "files": list(files), "next": list(steps)})
        return
    if not session.is_quiet:
        echo(f"Created {len(files)} files in {folder}/:")
        for path in files:
            echo("  ", style_text(path, dim=True))
    session.next(*steps)


def group_of(kind: str) -> str:
    """
    >>> group_of("agent"), group_of("sandbox")
    ('agents', 'sandboxes')
    """
    return f"{kind}es" if kind.endswith("x") else f"{kind}s"


def build_files(name: str, kinds: Sequence[str]) -> Mapping[str, str]:
    """The text of each file of a package, by its path; `template_name` of the templates becomes the name."""
    package = name.replace("-", "_")
    prefix = "".join(word.capitalize() for word in package.split("_"))
    chosen = [kind for kind in KINDS if kind in kinds]

    def fill(template: str) -> str:
        text = (_TEMPLATE / template).read_text(encoding="utf-8")
        return (
            text.replace("template_name", package)
            .replace("template-name", name)
            .replace("TemplateName", prefix)
        )

    # One README has a section for each kind; the package keeps those of the kinds that it has.
    introduction, *sections = fill("README.md").split("\n## ")
    usage = [section for section in sections if section.partition("\n")[0] in chosen]
    entry_points = [
        f'[project.entry-points."assay.{group_of(kind)}"]\n{package} = "{package}.{kind}:{prefix}{kind.capitalize()}"\n'
        for kind in chosen
    ]
    return {
        "pyproject.toml": "\n".join([fill("pyproject.toml"), *entry_points]),
        "README.md": "\n## ".join([introduction, *usage]),
        f"src/{package}/__init__.py": '"""Plug-ins for Assay, found through the entry points in pyproject.toml."""\n',
        **{f"src/{package}/{kind}.py": fill(f"{kind}.py") for kind in chosen},
        **{f"tests/test_{kind}.py": fill(f"test_{kind}.py") for kind in chosen},
    }


def _check_name(name: str, kinds: Sequence[str]) -> None:
    """AssayError for a name that cannot be that of a distribution, a Python package and a plug-in at once."""
    import keyword
    from importlib.util import find_spec

    from assay.errors import AssayError
    from assay.plugin import lookup

    if not _NAME.fullmatch(name):
        raise AssayError(
            f"'{name}' is not a valid plug-in name. Use lower-case letters, digits and single hyphens or underscores, "
            "and begin with a letter: my-scorer."
        )
    package = name.replace("-", "_")
    # Each of these would only show much later: a package that cannot be imported, one that hides a module of Python, or a
    # plug-in that never runs because another one of its name is found first.
    if keyword.iskeyword(package) or package in sys.stdlib_module_names:
        raise AssayError(f"'{name}' is a Python keyword or standard module. Choose another name.")
    if taken := [kind for kind in kinds if package in lookup.known(group_of(kind))]:
        raise AssayError(
            f"The {taken[0]} '{package}' already exists (see: assay list {group_of(taken[0])}). Choose another name."
        )
    # A package that is installed would be imported in the place of the new one. Folders without code have no origin.
    found = find_spec(package)
    if found is not None and found.origin is not None:
        raise AssayError(f"A Python package '{package}' is already installed. Choose another name.")
