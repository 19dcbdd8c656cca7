"""Every mistake of a spec is told at once, each with its line, its key and, where one is near, what was meant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.wording import Wording

from assay.errors import Mistake, SpecError
from assay.plan import expand
from assay.spec.read import load_spec


@pytest.fixture
def mistakes(tmp_path: Path, own_names: None, monkeypatch: pytest.MonkeyPatch):
    """The mistakes of a text as a spec."""
    monkeypatch.chdir(tmp_path)

    def told(text: str) -> tuple[Mistake, ...]:
        Path("spec.yaml").write_text(text)
        with pytest.raises(SpecError) as error:
            expand(load_spec(Path("spec.yaml")))
        return error.value.mistakes

    return told


def places(found: Sequence[Mistake]) -> list[str]:
    assert {mistake.file for mistake in found} == {"spec.yaml"}
    return [f"{mistake.line}: {mistake.key}" for mistake in found]


def missing(mistake: Mistake, names: str) -> list[str]:
    """Those of the names and values that the mistake does not tell."""
    told = f"{mistake.problem} {mistake.hint}"
    return [name for name in names.split() if name not in told]


def short(found: Sequence[Mistake]) -> str:
    """Without the names of all experiments and keys that are known."""
    return "\n".join(re.sub(r"(\w+, ){4,}\w+( and \d+ more)?", "…", str(mistake)) for mistake in found)


def test_every_mistake_of_a_file_is_reported_in_the_order_of_its_lines(mistakes, wording: Wording) -> None:
    text = """\
experimnt: noop
experiment: pragma_profil
parms: {a: 1}
params: [1, 2]
sweep: {num_records: 5}
strategy: cartesan
processes: many
isolation: procss
executor: loca
limits: {secnds: 3, seconds: -3}
notes: [x]
seed: -1
load: nothere.py
"""
    expected = {
        "1: experimnt": "'experiment'",
        "2: experiment": "'pragma_profil' 'pragma_profile'",
        "3: parms": "'params'",
        "4: params": "[1, 2]",
        "5: sweep.num_records": "5",
        "6: strategy": "'cartesian' 'random' 'zip' 'cartesan'",
        "7: processes": "'many'",
        "8: isolation": "'process' 'cold' 'inline' 'procss'",
        "9: executor": "'loca' 'local'",
        "10: limits.seconds": "0 -3",
        "10: limits.secnds": "'seconds'",
        "11: notes": "['x']",
        "12: seed": "0 -1",
        "13: load": "'nothere.py'",
    }
    found = mistakes(text)

    assert places(found) == list(expected)
    assert [missing(*pair) for pair in zip(found, expected.values(), strict=True)] == [[]] * len(found)
    wording(short(found))


def test_each_of_several_experiments_has_its_own_mistakes_told(mistakes, wording: Wording) -> None:
    text = """\
params: {num_records: 10}
experiments:
  - experiment: pragma_profile
    params: {num_recrds: 10, profile: balance}
  - experiment: noop
  - experiment: nope
  - {expriment: noop}
  - {experiment: pragma_profile, seed: 1}
  - {experiment: pragma_profile, iterations: {measured: 0}}
  - noop
"""
    expected = {
        "1: params.num_records": "'noop'",
        "4: experiments.0.params.profile": "'balanced' 'performance' 'safety' 'memory' 'balance'",
        "4: experiments.0.params.num_recrds": "'pragma_profile' 'num_records'",
        "6: experiments.2.experiment": "'nope' 'noop'",
        "7: experiments.3.expriment": "'experiment'",
        "7: experiments.3.experiment": "",
        "8: experiments.4.seed": "",
        "9: experiments.5.iterations.measured": "1 'auto' 0",
        "10: experiments.6": "{experiment: NAME}",
    }
    found = mistakes(text)

    assert places(found) == list(expected)
    assert [missing(*pair) for pair in zip(found, expected.values(), strict=True)] == [[]] * len(found)
    wording(short(found))


@pytest.mark.parametrize(
    ("text", "key", "names"),
    [
        ("iterations: {mesured: 5}", "iterations.mesured", "'measured'"),
        ("iterations: {warmup: -1}", "iterations.warmup", "0 -1"),
        ("iterations: {measured: five}", "iterations.measured", "'auto' 'five'"),
        ("iterations: {measured: 2.5}", "iterations.measured", "'auto' 2.5"),
        ("iterations: 5", "iterations", "5"),
        ("iterations: {measured: auto, until: {interval: 200%}}", "iterations.until.interval", "1 '200%'"),
        ("iterations: {measured: auto, until: {intervall: 5%}}", "iterations.until.intervall", "'interval'"),
        ("iterations: {measured: 5, until: {max: 9}}", "iterations.until", "measured: auto"),
        ("limits: {seconds: .inf}", "limits.seconds", "inf"),
        ("name: true", "name", "true"),
        ("tags: [a, 3]", "tags.1", "3"),
        ("parallelism: 0", "parallelism", "1 0"),
        ("order: random", "order", "'interleaved' 'sequential' 'random'"),
        ("instrumentation: [{interval_ms: 3}]", "instrumentation.0.name", ""),
        ("instrumentation: timing", "instrumentation", "'timing'"),
        ("strategy: random", "strategy", "'random' samples: 10"),
        ("executor: nowhere:Thing", "executor", "'nowhere' 'nowhere:Thing'"),
        ("isolation: inline\nlimits: {seconds: 3}", "isolation", "'inline' isolation: process"),
        ("isolation: inline\nprocesses: 2", "isolation", "'inline' isolation: process"),
        ("isolation: cold\niterations: {measured: auto}", "isolation", "'cold' iterations.measured"),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_key(
    mistakes, wording: Wording, text: str, key: str, names: str
) -> None:
    found = mistakes(f"experiment: noop\n{text}\n")

    assert places(found) == [f"2: {key}"]
    assert missing(found[0], names) == []
    wording(short(found))


@pytest.mark.parametrize(
    ("text", "place", "names"),
    [
        ("params: {num_records: lots}", "2: params.num_records", "'lots'"),
        ("params: {num_records: 2.5}", "2: params.num_records", "2.5"),
        ("params: {num_records: 2024-05-01}", "2: params.num_records", "'2024-05-01'"),
        ("params: {num_records: .inf}", "2: params.num_records", "inf"),
        ("sweep:\n  num_records: []", "3: sweep.num_records", ""),
        ("sweep:\n  records: [1]", "3: sweep.records", "'pragma_profile' 'num_records'"),
        ("sweep: {num_records: [10, lots]}", "2: sweep.num_records", "'lots'"),
        ("sweep: {num_records: [10, 20, 10]}", "2: sweep", "num_records=10"),
        (
            "strategy: zip\nsweep: {num_records: [1, 2], profile: [memory]}",
            "3: sweep",
            "strategy: zip num_records 2 profile 1",
        ),
        pytest.param(
            "sweep: {num_records: ["
            + ", ".join(map(str, range(1, 60_001)))
            + "], profile: [memory, safety]}",
            "2: sweep",
            "120,000 100,000 strategy: random samples: N",
            id="120000 points",
        ),
    ],
)
def test_params_and_axes_are_checked_against_the_experiment(
    mistakes, wording: Wording, text: str, place: str, names: str
) -> None:
    found = mistakes(f"experiment: pragma_profile\n{text}\n")

    assert places(found) == [place]
    assert missing(found[0], names) == []
    wording(short(found))


def test_an_unknown_instrument_is_reported_with_the_known_ones(mistakes, wording: Wording) -> None:
    found = mistakes("experiment: noop\ninstrumentation:\n  - timing\n  - tming\n")
    names = "'tming' cprofile gpu memory psutil rusage timing 'timing'"

    assert places(found) == ["4: instrumentation.1"]
    assert missing(found[0], names) == []
    wording(short(found))


@pytest.mark.parametrize(
    ("options", "names"), [("interval: 3", "'interval'"), ("interval_ms: fast", "interval_ms 'fast'")]
)
def test_options_of_an_instrument_are_checked(mistakes, wording: Wording, options: str, names: str) -> None:
    found = mistakes(f"experiment: noop\ninstrumentation: [{{name: psutil, {options}}}]\n")

    assert places(found) == ["2: instrumentation.0"]
    assert missing(found[0], names) == []
    wording(short(found))


@pytest.mark.parametrize("text", ["experiments: 5", "experiments: []", "experiments: {a: 1}"])
def test_experiments_must_be_a_list_with_something_in_it(mistakes, wording: Wording, text: str) -> None:
    found = mistakes(text)

    assert places(found) == ["1: experiments"]
    wording(short(found))


def test_a_spec_that_names_no_experiment_gets_an_example(mistakes, wording: Wording) -> None:
    found = mistakes("seed: 1")
    names = "experiment: NAME assay list experiments"

    assert places(found) == ["1: "]
    assert missing(found[0], names) == []
    wording(short(found))


def test_what_cannot_be_read_and_what_is_wrong_are_reported_together(mistakes, wording: Wording) -> None:
    found = mistakes("experiment: noop\nseed: 1\nseed: 2\nprocesses: x\n")

    assert places(found) == ["3: seed", "4: processes"]
    assert missing(found[1], "'x'") == []
    wording(short(found))


def test_a_file_that_raises_when_loaded_is_reported_with_both_lines(mistakes, wording: Wording) -> None:
    Path("bad.py").write_text("import os\n\n1 / 0\n")

    found = mistakes("experiment: noop\nload: bad.py\n")

    assert places(found) == ["2: load"]
    assert missing(found[0], "bad.py' 3 ZeroDivisionError") == []
    wording(short(found))


def test_a_key_without_a_value_is_as_good_as_none(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("experiment: noop\nparams:\nsweep:\niterations:\ntags:\nnotes:\nlimits:\n")

    assert len(expand(load_spec(path)).trials) == 1


def test_an_experiment_of_a_file_that_nobody_named_is_asked_for(mistakes, wording: Wording) -> None:
    found = mistakes("experiment: xylophone\n")
    names = "'xylophone' load: --load FILE.py"

    assert places(found) == ["1: experiment"]
    assert missing(found[0], names) == []
    wording(short(found))


@pytest.mark.parametrize(
    ("text", "place", "meant", "known"),
    [
        ("experiment: noop\n\nprocesess: 3\n", "3: procesess", "processes", {"seed", "experiments"}),
        (
            "experiment: noop\niterations:\n  mesured: 3\n",
            "3: iterations.mesured",
            "measured",
            {"warmup", "loops"},
        ),
        (
            "experiments:\n  - experiment: noop\n    sweeep: {}\n",
            "3: experiments.0.sweeep",
            "sweep",
            {"params"},
        ),
        (
            "experiment: pragma_profile\nparams:\n  profil: x\n",
            "3: params.profil",
            "profile",
            {"workload"},
        ),
    ],
)
def test_an_unknown_key_is_reported_with_its_line_and_the_known_ones(
    mistakes, text: str, place: str, meant: str, known: set[str]
) -> None:
    found = mistakes(text)

    assert places(found) == [place]
    told = f"{found[0].problem} {found[0].hint}"
    assert f"'{meant}'" in told
    assert known | {meant} <= set(re.findall(r"(?<!')\b\w+\b(?!')", told))
