"""Whatever stands behind the name of a file, a command says what is wrong with it and does not wait for ever."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.command import AssayInline
from tests.wording import Wording

from assay.files import UnreadableFile, read_bytes

COMMANDS = {
    "suite": ["validate", "{}"],
    "run": ["run", "{}", "--dry-run"],
    "agents": ["agent", "add", "{}"],
    "team": ["team", "{}"],
    "result": ["compare", "{}", "{}"],
    "baseline": ["gate", "{}", "--baseline", "{}"],
    "cassette": ["replay", "--cassette", "{}", "--", "true"],
    "series": ["detect", "{}"],
    "prompts": ["load", "http://127.0.0.1:9/v1", "--requests", "1", "--dataset", "{}"],
    "trace": ["load", "http://127.0.0.1:9/v1", "--rate", "1", "--arrivals", "trace:{}"],
    "python": ["run", "noop", "--load", "{}"],
}
ODD = [
    "fifo",
    "folder",
    "/dev/zero",
    "missing",
    "n" * 300,
    "a\x01b",
    "/proc/self/mem",
    "utf-16.yaml",
    "binary.json",
]


@pytest.fixture
def odd_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "utf-16.yaml").write_text("suite: a\n", encoding="utf-16")
    (tmp_path / "binary.json").write_bytes(bytes(range(256)) * 20)


@pytest.mark.parametrize("file", ODD)
@pytest.mark.usefixtures("odd_files")
def test_an_odd_file_is_one_message(assay_inline: AssayInline, file: str) -> None:
    for name, command in COMMANDS.items():
        done = assay_inline(*(word.replace("{}", file) for word in command))

        assert (done.code, name) == (2, name), done.err
        assert "Traceback" not in done.err
        assert done.out == ""


def test_a_pipe_can_be_read_where_a_file_is_wanted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[b"[" + b"1," * 300_000 + b"1]"])
    writer.start()
    # The shell's <(command) is such a name of a pipe that a program writes to.
    number = os.open(tmp_path / "pipe", os.O_RDONLY)
    try:
        assert len(read_bytes(Path(f"/proc/self/fd/{number}"))) == 600_003
    finally:
        os.close(number)
        writer.join()


def test_what_never_ends_is_read_up_to_a_limit(wording: Wording) -> None:
    with pytest.raises(UnreadableFile, match="1 MiB") as error:
        read_bytes(Path("/dev/zero"), limit=2**20)
    wording(error.value)


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ('load = ["/"]', "assay.load"),
        ('load = ["\\u0000"]', "assay.load"),
        (f'load = ["{"n" * 300}.py"]', "assay.load"),
        ('agents = ["nowhere.yaml"]', "assay.agents"),
        ('load = "a.py"', "assay.load"),
        ("db = 3", "assay.db"),
    ],
)
def test_a_wrong_setting_is_named_with_its_line(assay_inline: AssayInline, setting: str, key: str) -> None:
    assay_inline.write("assay.toml", f"[assay]\n{setting}\n")
    assay_inline.write(
        "suite.yaml", "suite: s\nagents: [a]\nbenchmarks: [{id: b, cases: [{input: x}], scorer: exact}]\n"
    )

    said = assay_inline("run", "suite.yaml", "--dry-run").refusal

    assert f"assay.toml:2: {key}: " in said


@pytest.mark.parametrize("process", [2**63, 10**40, -1, 1e300, "1", None])
def test_a_result_file_with_an_impossible_number_is_refused_or_read(
    assay_inline: AssayInline, process: Any
) -> None:
    flat = {"name": "x", "metrics": {}, "iteration_metrics": [{"duration_ms": 1, "process": process}] * 8}
    assay_inline.write("flat.json", json.dumps(flat))

    assert assay_inline("compare", "flat.json", "flat.json").code in (0, 2)


@pytest.mark.parametrize(
    "change",
    [{"method": 1}, {"path": None}, {"body": "deep"}, {"path": ["a"]}],
    ids=["method", "path", "body", "list"],
)
def test_a_cassette_line_of_another_shape_is_named(assay_inline: AssayInline, change: dict[str, Any]) -> None:
    if change.get("body"):
        deep: Any = "x"
        for _ in range(400):
            deep = {"a": deep}
        change = {"body": deep}
    request = {"method": "POST", "path": "/v1", "body": {}} | change
    line = {"assay_cassette": 1, "request": request, "response": {"status": 200, "headers": {}, "pieces": []}}
    assay_inline.write("tape.jsonl", json.dumps(line) + "\n")

    assert "tape.jsonl:1: " in assay_inline("replay", "--cassette", "tape.jsonl", "--", "true").refusal


def test_what_is_suggested_after_comparing_files_can_be_done(assay_inline: AssayInline) -> None:
    """A run that stands in a file only cannot be shown from the database."""
    flat = {"name": "x", "metrics": {}, "iteration_metrics": [{"duration_ms": 1 + n / 9} for n in range(8)]}
    assay_inline.write("flat.json", json.dumps(flat))

    said = assay_inline("compare", "flat.json", "flat.json").err

    command = "assay compare flat.json flat.json --format html"
    assert command in said
    assert "assay report" not in said
    assert assay_inline("compare", "flat.json", "flat.json", "--format", "html").code == 0
