"""`assay noise` and `assay power`, from the outside."""

from __future__ import annotations

import json

from tests.command import Assay, AssayInline, Prepare
from tests.wording import Wording

SUITE = """
suite: small
agents:
  - {name: coin, type: simulated, quality: 0.7, seconds: 0.001}
benchmarks:
  - id: sums
    cases: [%s]
    scorer: exact
"""


def _suite(assay: Assay, cases: int = 12) -> str:
    lines = ", ".join(f'{{id: c{n}, input: "{n}+1", expected: "{n + 1}"}}' for n in range(cases))
    assay.write("small.yaml", SUITE % lines)
    return "small.yaml"


def play(assay: AssayInline) -> None:
    assay.run_inline(_suite(assay), "--repetitions", "3", "-q")


def forecast(assay: AssayInline) -> None:
    play(assay)
    done = assay("power", "small.yaml", "--effect", "30%", "--metric", "score", "--json")
    assert done.code == 0, done.err
    assay.write("power.json", done.out)


def test_noise_runs_a_suite_against_itself_and_splits_what_varies(assay_inline: AssayInline) -> None:
    done = assay_inline("noise", _suite(assay_inline), "--agent", "coin", "--repetitions", "4", "--json")
    assert done.code == 0, done.err
    floors = {floor["metric"]: floor for floor in json.loads(done.out)["floors"]}
    assert floors["score"]["rounds"] == 4
    assert floors["score"]["cases"] == 12
    assert set(floors["score"]["share_of_variance"]) == {"case", "machine", "repetition"}


def test_noise_refuses_what_is_swept(assay_inline: AssayInline) -> None:
    assay_inline.write("s.yaml", "experiment: noop\nsweep: {seed: [1, 2]}\n")
    done = assay_inline("noise", "s.yaml")
    assert done.code == 2
    assert "Error" in done.err


def test_power_goes_by_what_is_stored(assay_inline: AssayInline, prepare: Prepare) -> None:
    prepare(assay_inline, forecast)
    (need,) = json.loads((assay_inline.folder / "power.json").read_text())["needs"]
    assert need["metric"] == "score"
    assert need["there"] == 12
    assert need["repetitions"] == 3
    assert need["units_needed"] > 1
    assert need["executions"] > 0


def test_power_without_results_says_what_to_run(assay_inline: AssayInline) -> None:
    done = assay_inline("power", _suite(assay_inline))
    assert done.code == 2
    assert "assay run small.yaml" in done.err


def test_an_effect_of_nothing_is_refused(assay_inline: AssayInline) -> None:
    done = assay_inline("power", _suite(assay_inline), "--effect", "0%")
    assert done.code == 2
    assert "--effect" in done.err


def test_power_of_a_run_names_what_can_be_run(assay_inline: AssayInline, prepare: Prepare) -> None:
    prepare(assay_inline, play)
    told = assay_inline("power", "last", "--effect", "90%", "--metric", "seconds").err
    assert "small --repetitions" in told, told
    assay_inline.write("s.yaml", "experiment: noop\nprocesses: 3\n")
    assay_inline("run", "s.yaml", "-q")
    for target, named in (("last", "SPEC"), ("s.yaml", "s.yaml")):
        command = f"Next: assay run {named} --processes"
        assert command in assay_inline("power", target, "--effect", "90%").err


def test_the_points_of_a_sweep_are_all_counted(assay_inline: AssayInline) -> None:
    assay_inline.write(
        "bench.py",
        "from assay import benchmark\n\n\n@benchmark\ndef work(size: int = 1):\n    sum(range(1000 * size))\n",
    )
    found = []
    for sizes in ("[1]", "[1, 2]"):
        assay_inline.write(
            "s.yaml",
            f"experiment: bench.py::work\nsweep: {{size: {sizes}}}\nprocesses: 3\niterations: {{measured: 4}}\n",
        )
        assert assay_inline("run", "s.yaml", "-q").code == 0
        (need,) = assay_inline("power", "last", "--effect", "90%", "--json").json["needs"]
        found.append(need["executions"] / need["units_needed"])
    assert found == [2 * 4, 2 * 4 * 2]


def test_an_agent_nobody_knows_is_reported_by_the_flag_that_named_it(
    assay_inline: AssayInline, wording: Wording
) -> None:
    refusal = assay_inline("noise", _suite(assay_inline), "--agent", "nobody").refusal
    assert "Error: --agent: " in refusal
    assert "'nobody'" in refusal
    wording(refusal.partition(" Agents:")[0])


def test_power_names_the_agents_there_are_instead_of_one_that_is_not(
    assay_inline: AssayInline, prepare: Prepare, wording: Wording
) -> None:
    prepare(assay_inline, play)
    refusal = assay_inline("power", "small.yaml", "--agent", "nobody").refusal
    assert "--agent: " in refusal
    assert "'nobody'" in refusal
    assert "coin" in refusal
    wording(refusal)


def test_power_names_the_metrics_there_are_instead_of_one_that_is_not(
    assay_inline: AssayInline, prepare: Prepare
) -> None:
    prepare(assay_inline, play)
    assert "score" in assay_inline("power", "small.yaml", "--metric", "skore").refusal


def test_power_says_what_its_forecast_rests_on(assay_inline: AssayInline, prepare: Prepare) -> None:
    prepare(assay_inline, forecast)
    (need,) = json.loads((assay_inline.folder / "power.json").read_text())["needs"]
    assert need["family"] == 1
    power = need["power_with_units_needed"]
    assert power["low"] < power["share"] < power["high"]
    assert power["share"] > 0.77
    assert power["simulations"] == 400
