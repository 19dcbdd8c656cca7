"""Whatever a file holds, the answer is one clear message, soon."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import pytest

from assay.errors import SpecError
from assay.spec.load import load_spec

MIB = 2**20

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]\n" for i in range(9)
)
MERGE_BOMB = "a0: &a0 {x: 1}\n" + "".join(
    f"a{i + 1}: &a{i + 1} {{<<: [{', '.join([f'*a{i}'] * 9)}], k{i}: 1}}\n" for i in range(12)
)

UNREADABLE: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "holds no keys"),
    "comment": ("# nothing yet\n", "holds no keys"),
    "list": ("- a\n- b\n", "holds no keys"),
    "word": ("hello", "holds no keys"),
    "junk": (bytes(range(256)) * 64, "is not UTF-8 text (byte 128)"),
    "latin-1": ("experiment: n\xf6op".encode("latin-1"), "is not UTF-8 text (byte 13)"),
    "zeros": (b"\0" * 1000, "holds a character that text cannot have"),
    "20 MB": ("experiment: noop\n# " + "x" * 20 * MIB, "is larger than 8 MiB"),
    "10 MB of lists": ("[" * 10 * MIB, "is larger than 8 MiB"),
    "7 MB of lists": ("[" * 7 * MIB, "is nested deeper than 60 levels"),
    "7 MB of mappings": ("{a: " * (7 * MIB // 4), "is nested deeper than 60 levels"),
    "deep blocks": (
        "\n".join(" " * depth + "a:" for depth in range(2000)),
        "is nested deeper than 60 levels",
    ),
    "a million values": ("a: [" + "1, " * MIB + "1]", "holds more than 100,000 values"),
    "a bomb of aliases": (BOMB, "holds more than 100,000 values"),
    "a bomb of merges": (MERGE_BOMB, "holds more than 100,000 values"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_file_that_is_no_spec_is_refused_soon(tmp_path: Path, kind: str) -> None:
    content, told = UNREADABLE[kind]
    path = tmp_path / "spec.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)

    started = perf_counter()
    with pytest.raises(SpecError) as error:
        load_spec(path)

    assert perf_counter() - started < 20
    assert len(error.value.mistakes) == 1
    assert str(error.value).startswith(str(path))
    assert told in str(error.value)


def test_a_folder_is_no_spec(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"is a folder, not a file\.$"):
        load_spec(tmp_path)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"spec\.yaml: does not exist\.$"):
        load_spec(tmp_path / "spec.yaml")


def test_a_name_that_no_file_can_have_is_told() -> None:
    with pytest.raises(SpecError, match=r"(does not exist|is not the name of a file)\.$"):
        load_spec(Path("a\0b.yaml"))
