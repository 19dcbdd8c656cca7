"""Whatever a file holds, the answer is one clear message, soon."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import pytest
from tests.wording import Wording

from assay.errors import SpecError
from assay.spec.read import load_spec

MIB = 2**20

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]\n" for i in range(9)
)
MERGE_BOMB = "a0: &a0 {x: 1}\n" + "".join(
    f"a{i + 1}: &a{i + 1} {{<<: [{', '.join([f'*a{i}'] * 9)}], k{i}: 1}}\n" for i in range(12)
)

UNREADABLE: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", ""),
    "comment": ("# nothing yet\n", ""),
    "list": ("- a\n- b\n", ""),
    "word": ("hello", ""),
    "junk": (bytes(range(256)) * 64, "128"),
    "latin-1": ("experiment: n\xf6op".encode("latin-1"), "13"),
    "zeros": (b"\0" * 1000, "U+0000"),
    "20 MB": ("experiment: noop\n# " + "x" * 20 * MIB, "8 MiB"),
    "10 MB of lists": ("[" * 10 * MIB, "8 MiB"),
    "7 MB of lists": ("[" * 7 * MIB, "60"),
    "7 MB of mappings": ("{a: " * (7 * MIB // 4), "60"),
    "deep blocks": (
        "\n".join(" " * depth + "a:" for depth in range(2000)),
        "60",
    ),
    "a million values": ("a: [" + "1, " * MIB + "1]", "100,000"),
    "a bomb of aliases": (BOMB, "100,000"),
    "a bomb of merges": (MERGE_BOMB, "100,000"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_file_that_is_no_spec_is_refused_soon(tmp_path: Path, wording: Wording, kind: str) -> None:
    content, told = UNREADABLE[kind]
    path = tmp_path / "spec.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)

    started = perf_counter()
    with pytest.raises(SpecError) as error:
        load_spec(path)

    assert perf_counter() - started < 20
    [mistake] = error.value.mistakes
    assert mistake.file == str(path)
    assert told in mistake.problem
    wording(mistake)


def test_a_folder_is_no_spec(tmp_path: Path, wording: Wording) -> None:
    with pytest.raises(SpecError) as error:
        load_spec(tmp_path)

    [mistake] = error.value.mistakes
    assert (mistake.file, mistake.line) == (str(tmp_path), None)
    wording(mistake)


def test_a_file_that_is_not_there_is_reported(tmp_path: Path, wording: Wording) -> None:
    with pytest.raises(SpecError) as error:
        load_spec(tmp_path / "spec.yaml")

    [mistake] = error.value.mistakes
    assert (mistake.file, mistake.line) == (str(tmp_path / "spec.yaml"), None)
    wording(mistake)


def test_a_name_that_no_file_can_have_is_reported() -> None:
    with pytest.raises(SpecError) as error:
        load_spec(Path("a\0b.yaml"))

    # What is wrong with it depends on the version of Python.
    [mistake] = error.value.mistakes
    assert (mistake.file, mistake.line) == ("a\0b.yaml", None)
