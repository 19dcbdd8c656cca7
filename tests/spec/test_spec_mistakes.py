"""Every mistake of a spec is told at once, each with its line, its key and, where one is near, what was meant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assay.errors import SpecError
from assay.plan import expand
from assay.spec.load import load_spec


@pytest.fixture
def mistakes(tmp_path: Path, own_names: None, monkeypatch: pytest.MonkeyPatch):
    """The mistakes of a text as a spec, each from its line number on."""
    monkeypatch.chdir(tmp_path)

    def told(text: str) -> list[str]:
        Path("spec.yaml").write_text(text)
        with pytest.raises(SpecError) as error:
            expand(load_spec(Path("spec.yaml")))
        return [_short(str(mistake)) for mistake in error.value.mistakes]

    return told


def _short(mistake: str) -> str:
    """Without the file, and without the names of all experiments and keys that are known."""
    text = re.sub(r" Known: [\w, ]+\.$", "", mistake.removeprefix("spec.yaml:"))
    return re.sub(r"among the (experiments|executors) \([^)]*\)", r"among the \1", text)


def test_every_mistake_of_a_file_is_told_in_the_order_of_its_lines(mistakes) -> None:
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
    assert mistakes(text) == [
        "1: experimnt: is not a key of a spec. Did you mean 'experiment'?",
        "2: experiment: There is no 'pragma_profil' among the experiments. Did you mean 'pragma_profile'?",
        "3: parms: is not a key of a spec. Did you mean 'params'?",
        "4: params: must be a mapping, not [1, 2] (a list).",
        "5: sweep.num_records: must be a list, not 5.",
        "6: strategy: must be 'cartesian', 'random' or 'zip', not 'cartesan'. Did you mean 'cartesian'?",
        "7: processes: must be a whole number, not 'many'.",
        "8: isolation: must be 'process', 'cold' or 'inline', not 'procss'. Did you mean 'process'?",
        "9: executor: There is no 'loca' among the executors. Did you mean 'local'?",
        "10: limits.seconds: must be greater than 0, not -3.",
        "10: limits.secnds: is not known here. Did you mean 'seconds'?",
        "11: notes: must be text, not ['x'] (a list).",
        "12: seed: must be at least 0, not -1.",
        "13: load: There is no file 'nothere.py'.",
    ]


def test_each_of_several_experiments_has_its_own_mistakes_told(mistakes) -> None:
    text = """\
params: {num_records: 10}
experiments:
  - experiment: pragma_profile
    params: {num_recrds: 10, profile: balance}
  - experiment: noop
  - experiment: nope
  - {expriment: noop}
  - {experiment: pragma_profile, tags: [x]}
  - {experiment: pragma_profile, iterations: {measured: 0}}
  - noop
"""
    assert mistakes(text) == [
        "1: params.num_records: is not a param of 'noop'. It has none.",
        "4: experiments.0.params.profile: must be 'balanced', 'performance', 'safety' or 'memory', not 'balance'. "
        "Did you mean 'balanced'?",
        "4: experiments.0.params.num_recrds: is not a param of 'pragma_profile'. Did you mean 'num_records'?",
        "6: experiments.2.experiment: There is no 'nope' among the experiments. Did you mean 'noop'?",
        "7: experiments.3.expriment: is not a key of a spec. Did you mean 'experiment'?",
        "7: experiments.3.experiment: is missing.",
        "8: experiments.4.tags: is not a key of a spec.",
        "9: experiments.5.iterations.measured: must be at least 1 or 'auto', not 0.",
        "10: experiments.6: must be a mapping. Write: {experiment: NAME}",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("iterations: {mesured: 5}", "2: iterations.mesured: is not known here. Did you mean 'measured'?"),
        ("iterations: {warmup: -1}", "2: iterations.warmup: must be at least 0, not -1."),
        ("iterations: {measured: five}", "2: iterations.measured: must be a whole number or 'auto', not 'five'."),
        ("iterations: {measured: 2.5}", "2: iterations.measured: must be a whole number or 'auto', not 2.5."),
        ("iterations: 5", "2: iterations: must be a mapping, not 5."),
        (
            "iterations: {measured: auto, until: {interval: 200%}}",
            "2: iterations.until.interval: must be less than 1, not '200%'.",
        ),
        (
            "iterations: {measured: auto, until: {intervall: 5%}}",
            "2: iterations.until.intervall: is not known here. Did you mean 'interval'?",
        ),
        (
            "iterations: {measured: 5, until: {max: 9}}",
            "2: iterations.until: holds only with measured: auto. Take one of them away.",
        ),
        ("limits: {seconds: .inf}", "2: limits.seconds: must be a finite number, not inf."),
        ("name: true", "2: name: must be text, not true. Text that looks like a number or like true needs quotes."),
        ("tags: [a, 3]", "2: tags.1: must be text, not 3. Text that looks like a number or like true needs quotes."),
        ("parallelism: 0", "2: parallelism: must be at least 1, not 0."),
        ("order: random", "2: order: must be 'interleaved' or 'sequential', not 'random'."),
        ("instrumentation: [{interval_ms: 3}]", "2: instrumentation.0.name: is missing."),
        ("instrumentation: timing", "2: instrumentation: must be a list, not 'timing'."),
        ("strategy: random", "2: strategy: 'random' needs samples, the number of points to draw. Add: samples: 10"),
        ("executor: nowhere:Thing", "2: executor: There is no module 'nowhere', which 'nowhere:Thing' among the executors names."),
        ("isolation: inline\nlimits: {seconds: 3}", "2: isolation: 'inline' cannot enforce seconds or memory. Use: isolation: process"),
        ("isolation: inline\nprocesses: 2", "2: isolation: 'inline' has one process only. Use: isolation: process"),
        ("isolation: cold\niterations: {measured: auto}", "2: isolation: 'cold' cannot stop by itself. Give iterations.measured a number."),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line_and_key(mistakes, text: str, told: str) -> None:
    assert mistakes(f"experiment: noop\n{text}\n") == [told]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("params: {num_records: lots}", "2: params.num_records: must be a whole number, not 'lots'."),
        ("params: {num_records: 2.5}", "2: params.num_records: must be a whole number, not 2.5."),
        (
            "params: {num_records: 2024-05-01}",
            "2: params.num_records: must be a whole number, not '2024-05-01'.",
        ),
        ("params: {num_records: .inf}", "2: params.num_records: must be a finite number, not inf."),
        ("sweep:\n  num_records: []", "3: sweep.num_records: has no values."),
        (
            "sweep:\n  records: [1]",
            "3: sweep.records: is not a param of 'pragma_profile'. Did you mean 'num_records'?",
        ),
        ("sweep: {num_records: [10, lots]}", "2: sweep.num_records: must be a whole number, not 'lots'."),
        ("sweep: {num_records: [10, 20, 10]}", "2: sweep: makes the same point twice: num_records=10."),
        (
            "strategy: zip\nsweep: {num_records: [1, 2], profile: [memory]}",
            "3: sweep: 'strategy: zip' needs axes of equal length (num_records 2, profile 1).",
        ),
        (
            "sweep: {num_records: ["
            + ", ".join(map(str, range(1, 60_001)))
            + "], profile: [memory, safety]}",
            "2: sweep: makes 120,000 points. At most 100,000 can be run: use strategy: random with samples: N, "
            "or fewer values.",
        ),
    ],
)
def test_params_and_axes_are_checked_against_the_experiment(mistakes, text: str, told: str) -> None:
    assert mistakes(f"experiment: pragma_profile\n{text}\n") == [told]


def test_an_unknown_instrument_is_told_with_the_known_ones(mistakes) -> None:
    [told] = mistakes("experiment: noop\ninstrumentation:\n  - timing\n  - tming\n")

    assert told.startswith("4: instrumentation.1: There is no 'tming' among the instruments (")
    assert all(name in told for name in ("cprofile", "gpu", "memory", "psutil", "rusage", "timing"))
    assert told.endswith("Did you mean 'timing'?")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("interval: 3", "unexpected keyword argument 'interval'"),
        ("interval_ms: fast", "interval_ms must be a number, not 'fast'"),
    ],
)
def test_options_of_an_instrument_are_checked(mistakes, options: str, told: str) -> None:
    [mistake] = mistakes(f"experiment: noop\ninstrumentation: [{{name: psutil, {options}}}]\n")

    assert mistake.startswith("2: instrumentation.0: ")
    assert told in mistake


@pytest.mark.parametrize("text", ["experiments: 5", "experiments: []", "experiments: {a: 1}"])
def test_experiments_must_be_a_list_with_something_in_it(mistakes, text: str) -> None:
    assert mistakes(text) == ["1: experiments: must be a list of at least one experiment."]


def test_a_spec_that_names_no_experiment_is_told_how_to(mistakes) -> None:
    [told] = mistakes("seed: 1")

    assert told == "1: names no experiment. Add: experiment: NAME (see: assay list experiments)"


def test_what_cannot_be_read_and_what_is_wrong_are_told_together(mistakes) -> None:
    assert mistakes("experiment: noop\nseed: 1\nseed: 2\nprocesses: x\n") == [
        "3: seed: stands twice. Keep one of them.",
        "4: processes: must be a whole number, not 'x'.",
    ]


def test_a_file_that_raises_when_loaded_is_told_with_both_lines(mistakes) -> None:
    Path("bad.py").write_text("import os\n\n1 / 0\n")

    [told] = mistakes("experiment: noop\nload: bad.py\n")

    assert told.startswith("2: load: '")
    assert told.endswith("bad.py' cannot be loaded: line 3: ZeroDivisionError: division by zero.")


def test_a_key_without_a_value_is_as_good_as_none(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("experiment: noop\nparams:\nsweep:\niterations:\ntags:\nnotes:\nlimits:\n")

    assert len(expand(load_spec(path)).trials) == 1


def test_an_experiment_of_a_file_that_nobody_named_is_asked_for(mistakes) -> None:
    assert mistakes("experiment: xylophone\n") == [
        "1: experiment: There is no 'xylophone' among the experiments. Is it in a file of yours? "
        "Name it in the spec, load: FILE.py, or with --load FILE.py."
    ]


@pytest.mark.parametrize(
    ("text", "place", "known"),
    [
        (
            "experiment: noop\n\nprocesess: 3\n",
            "spec.yaml:3: procesess: ",
            {"processes", "seed", "experiments"},
        ),
        (
            "experiment: noop\niterations:\n  mesured: 3\n",
            "spec.yaml:3: iterations.mesured: ",
            {"warmup", "loops"},
        ),
        (
            "experiments:\n  - experiment: noop\n    sweeep: {}\n",
            "spec.yaml:3: experiments.0.sweeep: ",
            {"sweep"},
        ),
        (
            "experiment: pragma_profile\nparams:\n  profil: x\n",
            "spec.yaml:3: params.profil: ",
            {"profile", "workload"},
        ),
    ],
)
def test_an_unknown_key_is_told_with_its_line_and_the_known_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, place: str, known: set[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("spec.yaml").write_text(text)
    with pytest.raises(SpecError) as error:
        expand(load_spec(Path("spec.yaml")))
    (told,) = map(str, error.value.mistakes)
    assert told.startswith(place)
    assert "Did you mean" in told
    assert known <= set(told.partition("Known: ")[2].rstrip(".").split(", "))
