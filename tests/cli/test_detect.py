"""`assay detect`: a series in, its change points out; for people, for programs, and line by line."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from typing import Any

import pytest
from tests.command import COMMAND, Assay, AssayInline, Done, environment
from tests.wording import Wording

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


def test_people_see_the_shape_the_levels_and_a_sentence(assay_inline: AssayInline, wording: Wording) -> None:
    assay_inline.write("series.json", json.dumps(STEP))

    done = assay_inline("detect", "series.json")

    assert done.code == 0
    assert "▁" in done.out
    assert "▲" in done.out
    assert "→" in done.out
    sentence = done.out.splitlines()[-1]
    assert "+12" in sentence
    assert re.findall(r"\d+", sentence)[-2:] == ["40", "80"]
    wording(sentence)
    command = "assay detect series.json --json"
    assert command in done.err
    assert max(map(len, done.out.splitlines())) <= 80


def test_a_change_of_four_points_is_shown_as_pending(assay_inline: AssayInline, wording: Wording) -> None:
    assay_inline.write("series.json", json.dumps(NEW))

    done = assay_inline("detect", "series.json")

    assert "△" in done.out
    (point,) = assay_inline("detect", "series.json", "--json").json["change_points"]
    assert (point["index"], point["pending"]) == (40, True)
    sentence = done.out.splitlines()[-1]
    assert "40" in sentence
    wording(sentence)


def test_a_clean_rise_of_thirty_points_is_a_drift(assay_inline: AssayInline) -> None:
    (assay_inline.folder / "rise.txt").write_text("\n".join(str(100 * 1.014**i) for i in range(30)))

    done = assay_inline("detect", "rise.txt", "--json")

    assert done.json["change_points"] == []
    assert done.json["drift"]["change"] == pytest.approx(0.497, abs=0.01)


def test_a_slow_drift_is_reported_with_its_interval(assay_inline: AssayInline, wording: Wording) -> None:
    assay_inline.write("series.json", json.dumps(DRIFT))

    found = assay_inline("detect", "series.json", "--json").json
    shown = assay_inline("detect", "series.json").out

    assert found["change_points"] == []
    low, high = found["drift"]["interval"]
    assert low <= found["drift"]["change"] <= high
    assert "↗" in shown
    assert "240" in shown.splitlines()[-1]
    wording(shown, near="↗")
    wording(shown.splitlines()[-1])


@pytest.mark.parametrize("series", [[], [1, 2, 3]])
def test_too_few_points_tell_nothing_and_say_why(
    assay_inline: AssayInline, series: list[float], wording: Wording
) -> None:
    assay_inline.write("series.json", json.dumps(series))

    found = assay_inline("detect", "series.json", "--json").json
    assert found["change_points"] == []
    assert re.findall(r"\d+", found["reason"]) == [str(len(series)), "16"]
    assert found["reason"] in assay_inline("detect", "series.json").out
    wording(found["reason"])


@pytest.mark.parametrize(("each", "told"), [(6, True), (8, False)])
def test_a_step_among_points_that_are_too_few_for_it_is_not_called_none(
    assay_inline: AssayInline, each: int, told: bool, wording: Wording
) -> None:
    levels = [10.0 + 0.01 * number for number in range(each)] + [
        15.0 + 0.01 * number for number in range(each)
    ]
    assay_inline.write("series.json", json.dumps(levels))
    found = assay_inline("detect", "series.json", "--json").json

    assert [point["index"] for point in found["change_points"]] == ([] if told else [each])
    assert re.findall(r"\d+", found["reason"]) == (["12", "16"] if told else [])
    assert bool(found["reason"]) is told
    shown = assay_inline("detect", "series.json").out
    assert found["reason"] in shown
    wording(shown.splitlines()[-1])


@pytest.mark.parametrize("extreme", [[1e300, -1e300] * 20, [0.0] * 20, [5e-324] * 20, [10**300] * 19])
def test_extreme_numbers_are_shown_without_a_traceback(
    assay_inline: AssayInline, extreme: list[float], wording: Wording
) -> None:
    assay_inline.write("series.json", json.dumps(extreme))

    done = assay_inline("detect", "series.json")

    assert done.code == 0
    assert assay_inline("detect", "series.json", "--json").json["change_points"] == []
    wording(done.out.splitlines()[-1])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[1, 2, NaN, 4]", ["2", "nan"]),
        ("[1, -Infinity]", ["1", "-inf"]),
        ("[1e999]", ["0", "inf"]),
        (f"[1{'0' * 400}]", ["0", "inf"]),
        ('[1, "2"]', ["1", '"2"']),
        ("[1, null]", ["1", "null"]),
        ("[true]", ["0", "true"]),
        ("[[1, 2]]", ["0", "[1, 2]"]),
        ('{"values": [1]}', ["list"]),
        ("[1, 2", ["JSON"]),
        ("[" * 100_000, ["nested"]),
        ("1\n2\nthree\n", ["line 3", '"three"']),
        ("1\nnan\n", ["line 2", "nan"]),
        (" \n", ["numbers"]),
        (b"\xff\xfe1", ["UTF-8"]),
    ],
    ids=["nan", "-inf", "inf", "large", "text", "null", "true", "list", "object", "unclosed", "nested", "line of text",
         "line of nan", "nothing", "bytes"],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_place(
    assay_inline: AssayInline, text: str | bytes, told: list[str], wording: Wording
) -> None:
    assay_inline.write("series.txt", text)

    refusal = assay_inline("detect", "series.txt", "--json").refusal
    assert all(part in refusal for part in told)
    wording(refusal)


def test_a_file_that_is_not_there_is_named(assay_inline: AssayInline, wording: Wording) -> None:
    refusal = assay_inline("detect", "nowhere.json").refusal

    assert "'nowhere.json'" in refusal
    assert " - " in refusal
    wording(refusal)


def test_many_series_are_answered_line_by_line(assay: Assay) -> None:
    done = piped(assay, f"{json.dumps(STEP)}\n{json.dumps([5.0] * 30)}\n{json.dumps([1, 2])}\n", "--lines")

    assert done.code == 0
    step, constant, short = documents(done)
    assert [point["index"] for point in step["change_points"]] == [40]
    assert constant["change_points"] == []
    assert re.findall(r"\d+", short["reason"]) == ["2", "16"]


def test_a_bad_line_gets_an_error_in_its_place_and_the_others_their_answers(
    assay: Assay, wording: Wording
) -> None:
    done = piped(assay, f'{json.dumps(STEP)}\n[1, NaN]\nnonsense\n"x"\n{json.dumps(STEP)}\n', "--lines")

    assert done.code == 2
    first, *bad, last = documents(done)
    assert first == last
    assert len(first["change_points"]) == 1
    assert [sorted(one) for one in bad] == [["error"]] * 3
    assert [re.findall(r"\d+", one["error"])[0] for one in bad] == ["2", "3", "4"]
    assert {"1", "nan"} <= set(re.findall(r"\w+", bad[0]["error"]))
    wording(bad[0]["error"])


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
    assay.write("series", f"{series}\n" * (200 if options == "--lines" else 1))
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


def test_lines_of_a_pipe_that_nobody_writes_to_are_not_waited_for(
    assay_inline: AssayInline, wording: Wording
) -> None:
    os.mkfifo(assay_inline.folder / "pipe")
    refusal = assay_inline("detect", "pipe", "--lines").refusal
    assert "'pipe'" in refusal
    wording(refusal)
