"""Names and other data that try to break a report: control characters, endless words, formulas, faults of the chart library."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.command import AssayInline
from tests.wording import Wording

from assay.report.charts import renderer as chart_renderer
from assay.report.charts.renderer import Drawing, draw
from assay.report.charts.vega import apply_theme
from assay.report.documents.csv import cell

HOSTILE = "a\x01\x1b[31mb\x9b\x07\ufffe\u202e" + "w" * 300
CONTROLS = set(map(chr, [*range(9), *range(11, 32), *range(127, 160), 0x202E]))


def write_hostile_benchmark(assay: AssayInline) -> None:
    code = f"from assay import benchmark\n@benchmark(name={HOSTILE!r}, iterations=6, warmup=0, loops=1)\ndef work():\n    pass\n"
    assay.write("bench.py", code)


def test_control_characters_in_a_name_reach_no_report_and_no_terminal(assay_inline: AssayInline) -> None:
    write_hostile_benchmark(assay_inline)

    done = assay_inline("run", "bench.py", "--report", "png,html,md,junit", "--out", "out")
    shown = assay_inline("show", "last")

    assert done.code == 0, done.err
    assert not CONTROLS & set(done.out + done.err + shown.out)
    folder = assay_inline.folder / "out"
    assert len(list(folder.glob("*.png"))) == 2
    for name in ("report.html", "report.md", "junit.xml"):
        text = (folder / name).read_text()
        assert "w" * 100 in text
        assert not {"\x01", "\x1b", "\x07"} & set(text)


CHART: dict[str, Any] = {
    "data": {"values": [{"x": 1}]},
    "mark": "point",
    "encoding": {"x": {"field": "x", "type": "quantitative"}},
}


def test_a_fault_of_the_chart_library_costs_one_chart(tmp_path: Path) -> None:
    """The library aborts its process on a control character in a title."""
    specs = [CHART, CHART | {"title": "a\x01b"}, CHART]
    drawings = [Drawing(spec, tmp_path / f"{number}.png") for number, spec in enumerate(specs)]

    failures = draw(drawings)

    assert [failure.path.name for failure in failures] == ["1.png"]
    assert "SIGABRT" in failures[0].reason
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["0.png", "2.png"]
    assert draw([Drawing(apply_theme(specs[1], dark=False), tmp_path / "cleaned.png")]) == []


def test_a_chart_library_that_hangs_costs_the_charts_only(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    sleeper = assay_inline.write("sleeper", "#!/bin/sh\nexec sleep 60\n")
    sleeper.chmod(0o755)
    monkeypatch.setattr(chart_renderer, "_LONGEST", 0.2)
    monkeypatch.setattr("sys.executable", str(sleeper))
    write_hostile_benchmark(assay_inline)

    done = assay_inline("run", "bench.py", "--isolation", "inline", "--report", "png,md", "--out", "out")

    assert done.code == 0, done.err
    (warning,) = [line for line in done.err.splitlines() if ".png" in line]
    wording(warning)
    assert (assay_inline.folder / "out" / "report.md").exists()
    assert not list((assay_inline.folder / "out").glob("*.png"))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1"])
def test_a_text_that_spreadsheets_would_compute_stays_text(text: str) -> None:
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize(
    "name", ["two words", "$(touch pwned)", "it's", '"; rm x #', "-rf", "a\x1bb", "back\\slash`id`"]
)
def test_suggested_commands_can_be_pasted_whatever_a_name_holds(assay_inline: AssayInline, name: str) -> None:
    suite = {
        "suite": name,
        "agents": [
            {"name": name, "type": "stub", "answer": "4"},
            {"name": "other", "type": "stub", "answer": "5"},
        ],
        "benchmarks": [{"id": "b", "scorer": "exact", "cases": [{"input": "2+2", "expected": "4"}]}],
    }
    file = f"{name}.json".replace("/", "")
    assay_inline.write(file, json.dumps(suite))

    assay_inline("run", "--isolation", "inline", "--repetitions", "1", "--quiet", "--", file)
    said = (
        assay_inline("validate", "--", file).err
        + assay_inline("leaderboard").err
        + assay_inline("matrix").err
    )

    commands = [
        part.strip() for line in said.splitlines() for part in line.removeprefix("Next: ").split(" · ")
    ]
    words = [_read_by_shell(command) for command in commands if command.startswith("assay ")]
    assert any(file in command for command in words)
    assert any(name in command for command in words)
    assert not (assay_inline.folder / "pwned").exists()


def _read_by_shell(command: str) -> list[str]:
    """The words that bash makes of a command."""
    script = f"set -- {command}; printf '%s\\0' \"$@\""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=20)
    return done.stdout.split("\0")
