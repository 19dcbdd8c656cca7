"""A spec becomes trials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.errors import SpecError
from assay.model import Isolation, Iterations, Limits, Order, Plan, Until
from assay.plan import expand
from assay.spec.read import load_spec, spec_of

EXPERIMENT = """\
from pathlib import Path
from typing import Any, Literal, Optional

from pydantic import BaseModel, Field

from assay import Experiment, benchmark, register_experiment


@register_experiment("typed")
class Typed(Experiment):
    class Params(BaseModel):
        size: int = Field(10, ge=1)
        rate: float = 0.5
        mode: Literal["fast", "safe"] = "fast"
        sizes: list[int] = [1]
        either: int | list[int] = 1
        anything: Any = None

    def execute_once(self, context): ...


@register_experiment("built")
class Built(Experiment):
    def __init__(self, size: int = 10, label: Optional[str] = None, parameters: Optional[dict[str, Any]] = None):
        super().__init__(parameters or {})

    def execute_once(self, context): ...


@benchmark(iterations=7, warmup=2)
def parse(text: str = "a", times: int = 3): ...


@benchmark
def loose(size=10, folder=Path("x"), marker=object()): ...
"""


@pytest.fixture
def planned(tmp_path: Path, own_names: None):
    """The plan of a text as a spec beside a file of experiments."""
    (tmp_path / "experiments.py").write_text(EXPERIMENT)

    def plan(text: str, **changes: Any) -> Plan:
        path = tmp_path / "spec.yaml"
        path.write_text("load: experiments.py\n" + text)
        return expand(load_spec(path, changes))

    return plan


def params(plan: Plan, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(trial.params[name] for name in names) for trial in plan.trials]


@pytest.mark.parametrize("experiment", ["typed", "built"])
def test_a_list_for_a_scalar_param_is_an_axis(planned, experiment: str) -> None:
    plan = planned(f"experiment: {experiment}\nparams: {{size: [1, 2]}}")

    assert params(plan, "size") == [(1,), (2,)]
    assert [trial.axes for trial in plan.trials] == [{"size": 1}, {"size": 2}]


def test_a_list_for_an_optional_scalar_is_an_axis(planned) -> None:
    spec = "experiment: built\nparams: {label: [a, b]}"
    assert params(planned(spec), "label") == [("a",), ("b",)]


@pytest.mark.parametrize("name", ["sizes", "either", "anything"])
def test_a_list_for_a_param_that_takes_one_is_a_value(planned, name: str) -> None:
    plan = planned(f"experiment: typed\nparams: {{{name}: [1, 2]}}")

    assert params(plan, name) == [([1, 2],)]
    assert plan.trials[0].axes == {}


def test_a_list_of_lists_is_an_axis_of_a_list_param(planned) -> None:
    spec = "experiment: typed\nparams: {sizes: [[1], [2, 3]]}"
    assert params(planned(spec), "sizes") == [([1],), ([2, 3],)]


def test_an_axis_with_a_bad_item_is_reported_as_a_bad_param(planned) -> None:
    with pytest.raises(SpecError, match=r"spec.yaml:3: params.size: .*\[1, 'x'\]"):
        planned("experiment: typed\nparams: {size: [1, x]}")


@pytest.mark.parametrize(
    "spec",
    [
        "experiment: typed\nparams: {size: true}",
        "experiment: typed\nparams: {rate: false}",
        "experiment: typed\nsweep: {size: [1, true]}",
        "experiment: built\nparams: {size: true}",
        "experiment: experiments.py::parse\nparams: {times: true}",
    ],
)
def test_true_is_no_number(planned, spec: str) -> None:
    with pytest.raises(SpecError, match=r"spec.yaml:3: .* must be a (whole )?number, not (true|false)"):
        planned(spec)


def test_true_and_numbers_in_text_are_values_of_params_that_take_them(planned) -> None:
    assert params(planned("experiment: typed\nparams: {anything: true}"), "anything") == [(True,)]
    assert params(planned("experiment: typed\nparams: {size: '7'}"), "size") == [(7,)]


def test_axes_in_sweep_and_in_params_are_combined(planned) -> None:
    plan = planned("experiment: typed\nparams: {size: [1, 2]}\nsweep: {mode: [fast, safe]}")

    assert params(plan, "mode", "size") == [("fast", 1), ("fast", 2), ("safe", 1), ("safe", 2)]


def test_a_sweep_of_a_param_replaces_its_fixed_value(planned) -> None:
    spec = "experiment: typed\nparams: {size: 5}\nsweep: {size: [1, 2]}"
    assert params(planned(spec), "size") == [(1,), (2,)]


def test_trials_are_named_by_what_varies(planned) -> None:
    plan = planned("experiment: typed\nparams: {rate: 0.1}\nsweep: {size: [1, 2]}")

    assert [trial.name for trial in plan.trials] == ["typed[size=1]", "typed[size=2]"]


def test_entries_of_one_experiment_are_named_by_the_params_in_which_they_differ(planned) -> None:
    plan = planned(
        "experiments:\n"
        "  - {experiment: typed, params: {size: 5, mode: fast}}\n"
        "  - {experiment: typed, params: {size: 5, mode: safe}}\n"
        "  - {experiment: typed, params: {size: 5, mode: safe}, isolation: cold}\n"
        "  - {experiment: typed, params: {mode: fast}, sweep: {size: [1, 2]}}\n"
        "  - {experiment: typed, params: {mode: safe}, sweep: {size: [2, 3]}}\n"
    )
    assert [trial.name for trial in plan.trials] == [
        "typed[mode=fast]",
        "typed[mode=safe]",
        "typed[mode=safe] (2)",
        "typed[size=1]",
        "typed[size=2, mode=fast]",
        "typed[size=2, mode=safe]",
        "typed[size=3]",
    ]


def test_long_values_make_short_names_that_differ(planned) -> None:
    plan = planned(f"experiment: parse\nsweep: {{text: [{'a' * 500}x, {'a' * 500}y]}}")

    first, second = (trial.name for trial in plan.trials)
    assert first != second
    assert len(first) < 60


def test_defaults_are_filled_in(planned) -> None:
    [trial] = planned("experiment: typed\nparams: {size: 3}").trials

    assert trial.params == {
        "size": 3,
        "rate": 0.5,
        "mode": "fast",
        "sizes": [1],
        "either": 1,
        "anything": None,
    }


def test_a_default_that_is_no_plain_value_stays_with_the_function(planned) -> None:
    [trial] = planned("experiment: loose").trials

    assert trial.params == {"size": 10}


def test_a_random_sweep_is_reproduced_by_the_seed(planned) -> None:
    text = "experiment: typed\nstrategy: random\nsamples: 5\nsweep: {size: [1, 2, 3, 4, 5, 6, 7, 8, 9]}\nseed: 11"

    first, second = planned(text), planned(text)

    assert params(first, "size") == params(second, "size")
    assert len({size for (size,) in params(first, "size")}) == 5


def test_a_zip_takes_axes_side_by_side(planned) -> None:
    plan = planned("experiment: typed\nstrategy: zip\nsweep: {size: [1, 2], mode: [safe, fast]}")

    assert params(plan, "mode", "size") == [("safe", 1), ("fast", 2)]


def test_common_keys_are_defaults_of_several_experiments_and_their_own_win(planned) -> None:
    plan = planned("""\
params: {size: 5}
iterations: {warmup: 1, measured: 3}
processes: 2
experiments:
  - {experiment: typed, params: {rate: 0.9}}
  - {experiment: built, params: {size: 7}, iterations: {measured: 9}, processes: 4}
""")

    typed, built = plan.trials
    assert (typed.params["size"], typed.params["rate"], built.params["size"]) == (5, 0.9, 7)
    assert typed.iterations == Iterations(warmup=1, measured=3)
    assert built.iterations == Iterations(warmup=1, measured=9)
    assert (typed.processes, built.processes) == (2, 4)
    assert [trial.index for trial in plan.trials] == [0, 1]


def test_one_experiment_may_be_run_in_several_ways(planned) -> None:
    plan = planned("experiment: typed\nexperiments: [{params: {size: 1}}, {params: {mode: safe}}]")

    assert params(plan, "size", "mode") == [(1, "fast"), (10, "safe")]


def test_a_param_that_an_experiment_fixes_is_not_swept_by_the_common_keys(planned) -> None:
    plan = planned("experiment: typed\nsweep: {size: [1, 2]}\nexperiments: [{params: {size: 9}}, {}]")

    assert params(plan, "size") == [(9,), (1,), (2,)]


def test_a_run_is_named_after_its_experiments_unless_it_has_a_name(planned) -> None:
    text = "experiments: [{experiment: typed}, {experiment: built}, {experiment: typed, params: {size: 2}}]"

    assert planned(text).name == "typed+built"
    assert planned(text + "\nname: nightly").name == "nightly"


def test_what_a_spec_says_reaches_the_plan(planned, tmp_path: Path) -> None:
    plan = planned("""\
experiment: typed
iterations: {warmup: 2, measured: auto, until: {interval: 2%, max: 40, metric: rate}, loops: 8}
processes: 3
instrumentation: [timing, {name: psutil, interval_ms: 50}]
isolation: process
limits: {seconds: 2.5, memory_mb: 64, tokens: 10, usd: 0.5}
order: sequential
parallelism: 2
output_dir: results
tags: [a, b]
notes: why
seed: 7
""")

    [trial] = plan.trials
    assert trial.iterations == Iterations(2, 40, Until(0.02, 40, metric="rate"), loops=8)
    assert trial.limits == Limits(2.5, 64 * 2**20, 10, 0.5)
    assert [(use.name, dict(use.options)) for use in trial.instruments] == [
        ("timing", {}),
        ("psutil", {"interval_ms": 50}),
    ]
    assert (trial.processes, trial.isolation) == (3, Isolation.PROCESS)
    assert (plan.order, plan.parallelism, plan.seed, plan.tags, plan.notes) == (
        Order.SEQUENTIAL,
        2,
        7,
        ("a", "b"),
        "why",
    )
    assert plan.output_dir == str(tmp_path / "results")
    assert plan.load == (str(tmp_path / "experiments.py"),)


def test_a_benchmark_brings_its_own_iterations_unless_the_spec_has_some(planned) -> None:
    assert planned("experiment: parse").trials[0].iterations == Iterations(2, 7, None, None)
    (own, *_) = planned("experiment: parse\niterations: {measured: 3, loops: 5}").trials
    assert own.iterations == Iterations(2, 3, None, 5)


def test_arguments_of_a_benchmark_are_params(planned) -> None:
    plan = planned("experiment: parse\nparams: {text: b}\nsweep: {times: [1, 2]}")

    assert params(plan, "text", "times") == [("b", 1), ("b", 2)]


def test_a_seed_is_drawn_where_none_is_given(planned) -> None:
    assert planned("experiment: typed").seed != planned("experiment: typed").seed


def test_changes_go_before_the_file(planned) -> None:
    plan = planned(
        "experiment: typed\nparams: {size: 1, rate: 0.1}\nseed: 1\niterations: {warmup: 5, measured: 5}",
        params={"size": 2},
        seed=9,
        iterations={"measured": 8},
    )

    assert params(plan, "size", "rate") == [(2, 0.1)]
    assert (plan.seed, plan.trials[0].iterations) == (9, Iterations(5, 8))


def test_changes_go_before_the_keys_of_one_of_several_experiments(planned) -> None:
    plan = planned(
        "experiments: [{experiment: typed, params: {size: 1}, processes: 2}]", params={"size": 2}, processes=5
    )

    assert (plan.trials[0].params["size"], plan.trials[0].processes) == (2, 5)


def test_a_param_that_a_change_fixes_is_no_longer_swept(planned) -> None:
    plan = planned("experiment: typed\nsweep: {size: [1, 2], mode: [fast, safe]}", params={"size": 7})

    assert params(plan, "mode", "size") == [("fast", 7), ("safe", 7)]


def test_a_number_of_repetitions_replaces_an_automatic_one(planned) -> None:
    plan = planned(
        "experiment: typed\niterations: {measured: auto, until: {max: 40}}", iterations={"measured": 3}
    )

    assert plan.trials[0].iterations == Iterations(measured=3)


def test_a_mistake_in_a_change_is_not_blamed_on_the_file(planned) -> None:
    with pytest.raises(SpecError, match=r"^request: params.sice: .*'typed'.*'size'"):
        planned("experiment: typed\nparams: {rate: 0.2}", params={"sice": 1})


def test_paths_in_changes_count_from_the_current_folder(
    planned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    assert planned("experiment: typed", output_dir="out").output_dir == str(elsewhere / "out")


def test_a_file_of_experiments_is_found_by_a_pattern_beside_the_spec(tmp_path: Path, own_names: None) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "experiments.py").write_text(EXPERIMENT)
    (tmp_path / "spec.yaml").write_text("load: ['some/*.py']\nexperiment: typed")

    assert len(expand(load_spec(tmp_path / "spec.yaml")).trials) == 1


def test_an_experiment_of_a_file_is_named_relative_to_the_spec(tmp_path: Path, own_names: None) -> None:
    (tmp_path / "experiments.py").write_text(EXPERIMENT)
    (tmp_path / "spec.yaml").write_text("experiment: experiments.py::typed")

    [trial] = expand(load_spec(tmp_path / "spec.yaml")).trials

    assert (trial.name, trial.experiment) == ("typed", f"{tmp_path / 'experiments.py'}::typed")


def test_a_spec_in_json_is_the_same_as_in_yaml(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("experiment: pragma_profile\nsweep: {num_records: [10, 20]}\nseed: 1")
    (tmp_path / "spec.json").write_text(
        '{"experiment": "pragma_profile",\n"sweep": {"num_records": [10, 20]}, "seed": 1}'
    )

    assert expand(load_spec(tmp_path / "spec.yaml")) == expand(load_spec(tmp_path / "spec.json"))


def test_the_code_base_of_an_installed_experiment_is_its_distribution(tmp_path: Path) -> None:
    [trial] = expand(spec_of(["noop"], tmp_path)).trials

    assert trial.agent.name == "assay"
    assert trial.agent.version


def test_the_code_base_of_a_file_outside_a_repository_is_the_file_with_a_hash(planned) -> None:
    [trial] = planned("experiment: typed").trials

    assert (trial.agent.name, len(trial.agent.version)) == ("experiments", 10)


@pytest.mark.parametrize("name", ["json:dumps", "json:JSONDecoder", "pathlib:Path.cwd"])
def test_what_is_no_experiment_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SpecError, match=r"execute_once.*@benchmark"):
        expand(spec_of([name], tmp_path))


def test_params_that_are_not_a_pydantic_model_are_reported(planned, tmp_path: Path) -> None:
    (tmp_path / "experiments.py").write_text(
        "from assay import Experiment, register_experiment\n\n@register_experiment('odd')\nclass Odd(Experiment):\n"
        "    class Params:\n        size = 1\n    def execute_once(self, context): ...\n"
    )

    with pytest.raises(SpecError, match=r"'Odd'.*pydantic"):
        planned("experiment: odd")
