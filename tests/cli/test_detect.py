"""`assay detect`: a series in, its change points out; for people, for programs, and line by line."""

from __future__ import annotations

import json
import os
import random
import subprocess
from typing import Any

import pytest
from tests.command import COMMAND, Assay, AssayInline, Done, environment

chance = random.Random(4)
STEP = [round(chance.gauss(100, 1), 3) for _ in range(40)] + [
    round(chance.gauss(112, 1), 3) for _ in range(40)
]
NEW = STEP[:44]
DRIFT = [round(chance.gauss(100 + place / 12, 1), 3) for place in range(240)]


def piped(assay: Assay, text: str, *arguments: str) -> Done:
    done = subprocess.run(
        [COMMAND, "detect", "-", *arguments],
        cwd=assay.folder,
        env=environment({}),
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def documents(done: Done) -> list[Any]:
    return [json.loads(line) for line in done.out.splitlines()]


def test_a_file_with_a_list_is_answered_with_the_promised_document(assay_inline: AssayInline) -> None:
    assay_inline.write("series.json", json.dumps(STEP))

    (point,) = assay_inline("detect", "series.json", "--json").json["change_points"]

    assert point["index"] == 40
    assert point["before"] == pytest.approx(100, abs=1)
    assert point["after"] == pytest.approx(112, abs=1)
    assert point["change"] == pytest.approx(0.12, abs=0.02)
    assert point["p_value"] < 0.001
    assert point["pending"] is False


def test_one_number_a_line_means_the_same_as_a_list(assay_inline: AssayInline) -> None:
    assay_inline.write("series.json", json.dumps(STEP))
    assay_inline.write("series.txt", "\n".join(map(str, STEP)) + "\n\n")

    assert (
        assay_inline("detect", "series.txt", "--json").out
        == assay_inline("detect", "series.json", "--json").out
    )


def test_a_series_may_come_through_a_pipe(assay: Assay) -> None:
    done = piped(assay, json.dumps(STEP), "--json")

    assert [point["index"] for point in done.json["change_points"]] == [40]
    assert done.err == ""


def test_people_see_the_shape_the_levels_and_a_sentence(assay_inline: AssayInline) -> None:
    assay_inline.write("series.json", json.dumps(STEP))

    done = assay_inline("detect", "series.json")

    assert done.code == 0
    assert "▁" in done.out
    assert "▲" in done.out
    assert "→" in done.out
    assert "A change of +12" in done.out
    assert "at 40, in 80 points." in done.out
    assert "Next: assay detect series.json --json" in done.err
    assert max(map(len, done.out.splitlines())) <= 80


def test_a_change_of_four_points_is_shown_as_pending(assay_inline: AssayInline) -> None:
    assay_inline.write("series.json", json.dumps(NEW))

    done = assay_inline("detect", "series.json")

    assert "△" in done.out
    assert "at 40 is pending: wait for the next points." in done.out


def test_a_clean_rise_of_thirty_points_is_a_drift(assay_inline: AssayInline) -> None:
    (assay_inline.folder / "rise.txt").write_text("\n".join(str(100 * 1.014**i) for i in range(30)))

    done = assay_inline("detect", "rise.txt", "--json")

    assert done.json["change_points"] == []
    assert done.json["drift"]["change"] == pytest.approx(0.497, abs=0.01)


def test_a_slow_drift_is_told_with_its_interval(assay_inline: AssayInline) -> None:
    assay_inline.write("series.json", json.dumps(DRIFT))

    found = assay_inline("detect", "series.json", "--json").json
    shown = assay_inline("detect", "series.json").out

    assert found["change_points"] == []
    low, high = found["drift"]["interval"]
    assert low <= found["drift"]["change"] <= high
    assert "↗ Slow drift from point" in shown
    assert "A slow drift and no step in 240 points." in shown


@pytest.mark.parametrize("series", [[], [1, 2, 3]])
def test_too_few_points_tell_nothing_and_say_why(assay_inline: AssayInline, series: list[float]) -> None:
    assay_inline.write("series.json", json.dumps(series))

    assert assay_inline("detect", "series.json", "--json").json["change_points"] == []
    assert f"{len(series)} of at least 16 points" in assay_inline("detect", "series.json").out


@pytest.mark.parametrize(("each", "told"), [(6, True), (8, False)])
def test_a_step_among_points_that_are_too_few_for_it_is_not_called_none(
    assay_inline: AssayInline, each: int, told: bool
) -> None:
    levels = [10.0 + 0.01 * number for number in range(each)] + [
        15.0 + 0.01 * number for number in range(each)
    ]
    assay_inline.write("series.json", json.dumps(levels))
    found = assay_inline("detect", "series.json", "--json").json

    assert [point["index"] for point in found["change_points"]] == ([] if told else [each])
    assert found["reason"] == ("12 of at least 16 points" if told else "")
    assert ("12 of at least 16 points" in assay_inline("detect", "series.json").out) is told


@pytest.mark.parametrize("extreme", [[1e300, -1e300] * 20, [0.0] * 20, [5e-324] * 20, [10**300] * 19])
def test_extreme_numbers_are_shown_without_a_traceback(
    assay_inline: AssayInline, extreme: list[float]
) -> None:
    assay_inline.write("series.json", json.dumps(extreme))

    done = assay_inline("detect", "series.json")

    assert done.code == 0
    assert "No change point" in done.out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[1, 2, NaN, 4]", "The value at position 2 is nan, not a finite number."),
        ("[1, -Infinity]", "The value at position 1 is -inf, not a finite number."),
        ("[1e999]", "The value at position 0 is inf, not a finite number."),
        (f"[1{'0' * 400}]", "The value at position 0 is inf, not a finite number."),
        ('[1, "2"]', 'The value at position 1 is "2", not a number.'),
        ("[1, null]", "The value at position 1 is null, not a number."),
        ("[true]", "The value at position 0 is true, not a number."),
        ("[[1, 2]]", "The value at position 0 is [1, 2], not a number."),
        ('{"values": [1]}', "A list of numbers is wanted"),
        ("[1, 2", "This is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("1\n2\nthree\n", 'The value at line 3 is "three", not a number.'),
        ("1\nnan\n", "The value at line 2 is nan, not a finite number."),
        (" \n", "There are no numbers."),
        (b"\xff\xfe1", "not text in UTF-8"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(
    assay_inline: AssayInline, text: str | bytes, told: str
) -> None:
    assay_inline.write("series.txt", text)

    assert told in assay_inline("detect", "series.txt", "--json").refusal


def test_a_file_that_is_not_there_is_named(assay_inline: AssayInline) -> None:
    refusal = assay_inline("detect", "nowhere.json").refusal

    assert "'nowhere.json' does not exist" in refusal
    assert "- for standard input" in refusal


def test_many_series_are_answered_line_by_line(assay: Assay) -> None:
    done = piped(assay, f"{json.dumps(STEP)}\n{json.dumps([5.0] * 30)}\n{json.dumps([1, 2])}\n", "--lines")

    assert done.code == 0
    step, constant, short = documents(done)
    assert [point["index"] for point in step["change_points"]] == [40]
    assert constant["change_points"] == []
    assert short["reason"] == "2 of at least 16 points"


def test_a_bad_line_gets_an_error_in_its_place_and_the_others_their_answers(assay: Assay) -> None:
    done = piped(assay, f'{json.dumps(STEP)}\n[1, NaN]\nnonsense\n"x"\n{json.dumps(STEP)}\n', "--lines")

    assert done.code == 2
    first, *bad, last = documents(done)
    assert first == last
    assert len(first["change_points"]) == 1
    assert [sorted(one) for one in bad] == [["error"]] * 3
    assert bad[0]["error"].startswith("Line 2: The value at position 1 is nan")


def test_each_line_is_answered_before_the_next_is_sent(assay: Assay) -> None:
    with subprocess.Popen(
        [COMMAND, "detect", "-", "--lines"],
        cwd=assay.folder, env=environment({}), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        for n in (3, 4):
            process.stdin.write(json.dumps([1.0] * n) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["n"] == n
        process.stdin.close()
        assert process.wait(120) == 0


def test_the_same_series_gives_the_same_bytes(assay: Assay) -> None:
    assert piped(assay, json.dumps(DRIFT), "--json").out == piped(assay, json.dumps(DRIFT), "--json").out


@pytest.mark.parametrize("options", ["--lines", "--json", ""])
def test_a_reader_that_goes_away_is_no_error(assay: Assay, options: str) -> None:
    series = json.dumps(STEP)
    assay.write("series", f"{series}\n" * (2000 if options == "--lines" else 1))
    script = f"{COMMAND} detect series {options} | head -c 1; echo; echo ${{PIPESTATUS[0]}}"

    done = subprocess.run(
        ["bash", "-c", script],
        cwd=assay.folder,
        env=environment({}),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=90,
    )

    assert done.stdout.splitlines()[-1] == "0"
    assert "Traceback" not in done.stderr


def test_lines_of_a_pipe_that_nobody_writes_to_are_not_waited_for(assay_inline: AssayInline) -> None:
    os.mkfifo(assay_inline.folder / "pipe")
    assert "'pipe' is a pipe that nobody writes to" in assay_inline("detect", "pipe", "--lines").refusal
