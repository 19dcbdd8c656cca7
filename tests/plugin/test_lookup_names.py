"""A name finds its plug-in, and a name that finds none says what there is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.wording import Wording

from assay.errors import LookupFailed, MissingExtra
from assay.plugin import lookup

EXPERIMENT = """\
from assay import Experiment, benchmark, register_experiment


@register_experiment("{name}")
class Mine(Experiment):
    def execute_once(self, context): ...


@benchmark(name="join words")
def join(): ...
"""


@pytest.fixture(autouse=True)
def alone(own_names: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


def write(name: str, text: str) -> Path:
    path = Path(name).absolute()
    path.write_text(text)
    return path


def test_an_entry_point_is_found_by_its_name() -> None:
    assert lookup.find("experiments", "noop").__name__ == "Noop"


def test_what_a_decorator_registers_is_found_by_its_slug() -> None:
    module = lookup.load_file(write("mine.py", EXPERIMENT.format(name="slug")))

    assert lookup.find("experiments", "slug") is module.Mine
    assert lookup.find("experiments", "join words") is module.join


def test_a_module_and_an_attribute_are_found() -> None:
    assert lookup.find("experiments", "assay.builtin.experiments.noop:Noop").__name__ == "Noop"


def test_a_module_of_the_current_folder_is_found() -> None:
    write("beside.py", "class Inner:\n    class Deep: ...\n")

    assert lookup.find("experiments", "beside:Inner.Deep").__qualname__ == "Inner.Deep"


@pytest.mark.parametrize("name", ["slug", "Mine", "join words", "join"])
def test_a_name_in_a_file_is_found_by_slug_and_by_attribute(name: str) -> None:
    path = write("mine.py", EXPERIMENT.format(name="slug"))

    assert lookup.find("experiments", f"{path}::{name}") is not None


def test_an_unknown_name_in_a_file_lists_those_that_it_has() -> None:
    path = write("mine.py", EXPERIMENT.format(name="slug"))

    with pytest.raises(
        LookupFailed,
        match=r"'slog'.*'slug'.* '.*mine.py': join words, slug\.",
    ):
        lookup.find("experiments", f"{path}::slog")


def test_an_unknown_name_lists_the_known_ones_and_the_nearest() -> None:
    with pytest.raises(LookupFailed, match=r"'nop'.*'noop'.*Experiments: .*\bnoop\b"):
        lookup.find("experiments", "nop")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nowhere:Thing", "'nowhere:Thing' cannot be imported: there is no module 'nowhere'."),
        ("json.nowhere:Thing", "'json.nowhere:Thing' cannot be imported: there is no module 'json.nowhere'."),
        ("json:nothing", "Module 'json' has no 'nothing', which 'json:nothing' names."),
        ("json:", "Module 'json' has no '', which 'json:' names."),
        (":x", "':x' does not name one of the experiments. Write a name, module:attribute or file.py::name"),
        (".relative:x", "'.relative:x' does not name one of the experiments. Write a name"),
        ("absent.py::x", "There is no file '"),
    ],
)
def test_a_place_that_leads_nowhere_is_reported(name: str, told: str) -> None:
    with pytest.raises(LookupFailed) as error:
        lookup.find("experiments", name)

    assert str(error.value).startswith(told)


def test_a_module_that_raises_is_reported_and_not_shown_as_our_fault() -> None:
    write("broken_module.py", "raise RuntimeError('not today')\n")

    with pytest.raises(LookupFailed, match=r"'broken_module'.*: RuntimeError: not today"):
        lookup.find("experiments", "broken_module:x")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import os\n\nraise ValueError('no')\n", "line 3: ValueError: no."),
        ("def f():\n    return 1 +\n", "line 2: invalid syntax."),
        ("import no_such_package_here\n", "line 1: ModuleNotFoundError: No module named 'no_such_package_here'. Install it: pip install no_such_package_here"),
        ("import sys\nsys.exit(3)\n", "it calls sys.exit(3)"),
        ("def f():\n    1 / 0\n\nf()\n", "line 2: ZeroDivisionError"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_loaded_is_reported_with_the_line(
    text: str, told: str, wording: Wording
) -> None:
    path = write("broken.py", text)

    with pytest.raises(LookupFailed) as error:
        lookup.load_file(path)

    assert str(error.value).startswith(f"'{path}' ")
    assert told in str(error.value)
    wording(str(error.value).replace(str(path), "broken.py"))


def test_a_file_is_run_once_however_often_it_is_loaded() -> None:
    path = write(
        "counting.py", "from pathlib import Path\nwith Path('log').open('a') as log: log.write('x')\n"
    )

    lookup.load_file(path)
    lookup.load_file(path)

    assert Path("log").read_text() == "x"


def test_a_file_that_another_one_imported_is_not_run_again() -> None:
    first = write("first.py", "import second\n")
    second = write(
        "second.py",
        EXPERIMENT.format(name="slug")
        + "from pathlib import Path\nwith Path('log').open('a') as log: log.write('x')\n",
    )

    lookup.load_file(first)
    lookup.load_file(second)

    assert Path("log").read_text() == "x"
    assert lookup.find_registered_names(second, "experiments") == ["slug", "join words"]
    assert lookup.find_registered_names(first, "experiments") == []


def test_a_file_may_register_what_another_module_defines() -> None:
    write(
        "library.py",
        "from assay import Experiment\n\nclass Lent(Experiment):\n    def execute_once(self, context): ...\n",
    )
    path = write(
        "mine.py",
        "from assay import register_experiment\nfrom library import Lent\n\nregister_experiment('lent')(Lent)\n",
    )

    lookup.load_file(path)

    assert lookup.find_registered_names(path, "experiments") == ["lent"]


def test_of_two_files_with_the_same_name_in_them_the_one_loaded_last_counts() -> None:
    one = lookup.load_file(write("one.py", EXPERIMENT.format(name="slug")))
    two = lookup.load_file(write("two.py", EXPERIMENT.format(name="slug")))
    assert lookup.find("experiments", "slug") is two.Mine

    lookup.load_file(Path("one.py"))

    assert lookup.find("experiments", "slug") is one.Mine


def test_two_files_of_one_name_in_different_folders_are_two_modules() -> None:
    Path("other").mkdir()

    one = lookup.load_file(write("same.py", "here = 1\n"))
    two = lookup.load_file(write("other/same.py", "here = 2\n"))

    assert (one.here, two.here) == (1, 2)


def test_a_package_that_a_plug_in_lacks_is_named_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    write("needy.py", "import no_such_package_here\n")

    with pytest.raises(
        MissingExtra,
        match="'needy:x' needs the package 'no_such_package_here': pip install no_such_package_here",
    ):
        lookup.find("instruments", "needy:x")


def test_a_package_of_an_extra_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    write("needy.py", "import psycopg\n")

    with pytest.raises(
        MissingExtra, match=r"needs the package 'psycopg': pip install 'assay-bench\[postgres\]'"
    ):
        lookup.find("experiments", "needy:x")


def test_plain_functions_of_a_loaded_file_are_instruments_and_reporters_but_no_experiments() -> None:
    lookup.load_file(write("functions.py", "def watch(context): ...\n"))

    assert lookup.find("instruments", "watch") is lookup.find("reporters", "watch")
    with pytest.raises(LookupFailed):
        lookup.find("experiments", "watch")


def test_sources_name_the_distribution_or_the_file() -> None:
    path = write("mine.py", EXPERIMENT.format(name="slug"))
    lookup.load_file(path)

    origins = {source.name: source.origin for source in lookup.sources("experiments")}

    assert (origins["noop"], origins["slug"]) == ("assay", str(path))


def test_a_file_is_loaded_as_it_is_though_it_looks_as_old_as_before(tmp_path: Path) -> None:
    """Python goes by the size of a file and the second of its last change, which a quick change leaves as they were."""
    found = []
    for number in (1, 2):
        path = tmp_path / "quickly_changed.py"
        path.write_text(f"VALUE = {number}\n")
        os.utime(path, (1_800_000_000, 1_800_000_000))
        found.append(lookup._execute_file(f"quickly_changed_{number}", path).VALUE)
    assert found == [1, 2]
