from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.command import AssayInline

from assay.builtin.experiments.rl import native
from assay.builtin.experiments.rl.native import RECIPES, NativeTrainer, Recipe
from assay.builtin.experiments.rl.objectives import Dpo, Grpo, Gspo, PolicyLoss, Ppo, Rollout
from assay.builtin.experiments.rl.tasks import TASKS
from assay.builtin.experiments.rl.training import TrainingBudget, run_training
from assay.builtin.findings.algorithm import AlgorithmContest, AlgorithmResults, describe_contest
from assay.builtin.findings.algorithm_summary import compare_pairs, summarise_algorithms
from assay.model import Execution, Phase, Status
from assay.testing import sample_report

SMALL = ("--set", "task=arithmetic", "--set", "episodes=80", "--set", "group_size=4", "--set", "window=10")


def run_comparison(assay: AssayInline, algorithms: str, *words: str, seeds: int = 3) -> Any:
    """Without workers, where each repetition is a seed."""
    few = ("--processes", "1", "--repetitions", str(seeds), "--isolation", "inline")
    return _run(assay, algorithms, *few, *words)


def _run(assay: AssayInline, algorithms: str, *words: str) -> Any:
    done = assay(
        "run", "algorithm_comparison", "--sweep", f"algorithm={algorithms}", *SMALL, *words, "--json"
    )
    assert done.out, done.err
    return json.loads(done.out)


@dataclass(frozen=True)
class Flipped:
    """An objective whose gradient points the wrong way."""

    objective: Any

    def __call__(self, rollout: Rollout, logp: Any, values: Any) -> PolicyLoss:
        loss = self.objective(rollout, logp, values)
        flipped: PolicyLoss = replace(loss, by_logp=-loss.by_logp)
        return flipped


@pytest.mark.parametrize("objective", [Grpo(), Gspo(), Ppo(), Dpo()], ids=lambda o: type(o).__name__)
def test_every_algorithm_learns_and_with_its_gradient_turned_round_it_does_not(objective: Any) -> None:
    def gains(recipe: Recipe) -> list[float]:
        budget = TrainingBudget(150, 8, 0.8, 10)
        trainers = [NativeTrainer(TASKS["arithmetic"], recipe, 8, seed) for seed in range(3)]
        made = [run_training(trainer, budget, lambda text: None) for trainer in trainers]
        return [one.compute_figures()["final_reward"] - one.untrained_reward for one in made]

    right = gains(Recipe(objective, 0.005))
    wrong = gains(Recipe(Flipped(objective), 0.005))
    assert min(right) > 0.2
    assert max(wrong) < 0.05


def test_a_comparison_says_what_it_found_in_every_format(assay_inline: AssayInline) -> None:
    words = ("--processes", "3", "--report", "html,md,json,algorithm_comparison", "--out", "out")
    found = _run(assay_inline, "grpo,dpo", *words)

    (contest,) = found["algorithms"]
    assert {result["algorithm"] for result in contest["results"]} == {"GRPO", "DPO"}
    assert all(result["seeds"] == [42, 43, 44] for result in contest["results"])
    assert contest["preliminary"] is False
    # Three seeds cannot prove a difference, whatever they show.
    assert contest["best"] is None
    assert contest["comparisons"][0]["is_tied"] is True
    files = {path.name for path in (assay_inline.folder / "out").iterdir()}
    assert {
        "report.html",
        "report.md",
        "result.json",
        "algorithm_comparison.json",
        "algorithm_comparison.md",
    } <= files
    written = json.loads((assay_inline.folder / "out" / "algorithm_comparison.json").read_text())
    fields = {
        "algorithm", "episodes_to_threshold", "final_reward", "mean_reward", "std_reward", "convergence_speed",
        "stability_score", "training_time", "memory_usage", "sample_efficiency",
    }  # fmt: skip
    assert written["timestamp"]
    assert all(fields <= result.keys() for result in written["results"])


def test_two_seeds_are_preliminary(assay_inline: AssayInline) -> None:
    found = run_comparison(assay_inline, "grpo,dpo", seeds=2)
    assert found["algorithms"][0]["preliminary"] is True
    assert "preliminary" in {doubt["code"] for doubt in found["warnings"]}


def test_made_up_curves_are_marked_simulated(assay_inline: AssayInline) -> None:
    found = run_comparison(assay_inline, "grpo,ppo", "--set", "backend=stub")
    (contest,) = found["algorithms"]
    assert contest["simulated"] is True
    assert contest["preliminary"] is True
    assert all(trial["applied"]["simulated"] is True for trial in found["trials"])


def test_a_seed_that_diverges_is_kept_and_the_others_go_on(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native.NativeTrainer, "train", _fail_first(NativeTrainer.train))
    found = run_comparison(assay_inline, "grpo")
    (trial,) = found["trials"]
    assert trial["counts"] == {"ok": 2, "invalid_output": 1}
    (result,) = found["algorithms"][0]["results"]
    assert (result["diverged_seeds"], result["failed_seeds"], len(result["seeds"])) == (1, 1, 3)
    assert "diverged" in {doubt["code"] for doubt in found["warnings"]}


def _fail_first(train: Any) -> Any:
    calls: list[int] = []

    def train_badly_once(self: NativeTrainer, episodes: int, record: Any) -> None:
        calls.append(1)
        bad = float("nan") if len(calls) == 1 else 1.0
        train(self, episodes, lambda reward: record(reward * bad))

    return train_badly_once


def make_trials(**curves: list[list[float]]) -> list[Any]:
    """Trials of the experiment with these rewards by algorithm and seed."""
    report = sample_report()
    trials = []
    for index, (name, seeds) in enumerate(curves.items()):
        first = report.trials[0]
        point = replace(
            first.stored.trial, experiment="algorithm", params={"algorithm": name, "window": 10}, axes={"algorithm": name},
            processes=len(seeds),
        )  # fmt: skip
        executions = [
            Execution(
                index, number, Phase.MEASURED, 0, Status.OK, 0.0,
                {"final_reward": float(np.mean(rewards[-50:])), "untrained_reward": 0.1, "seconds": 1.0},
                detail={"training": {"seed": 42 + number, "rewards": rewards}},
            )
            for number, rewards in enumerate(seeds)
        ]  # fmt: skip
        trials.append(
            replace(
                first,
                stored=replace(first.stored, trial=point),
                executions=executions,
                counts={"ok": len(seeds)},
            )
        )
    return trials


def train_seeds(seeds: range) -> list[list[float]]:
    task, recipe = TASKS["arithmetic"], RECIPES["grpo"]
    curves: list[list[float]] = [[] for _ in seeds]
    for seed, curve in zip(seeds, curves, strict=True):
        NativeTrainer(task, recipe, 4, seed).train(80, curve.append)
    return curves


def test_one_algorithm_under_two_names_is_called_tied() -> None:
    finding = AlgorithmResults.read(make_trials(grpo=train_seeds(range(6)), ppo=train_seeds(range(100, 106))))
    assert isinstance(finding, AlgorithmResults)
    (contest,) = finding.document()["algorithms"]
    assert contest["best"] is None
    assert contest["comparisons"][0]["is_tied"] is True


def test_a_clear_difference_is_called_best_and_what_never_converged_ranks_last() -> None:
    good = [[0.2] * 30 + [0.9 + seed / 100] * 60 for seed in range(6)]
    bad = [[0.2] * 60 + [0.5 + seed / 100] * 30 for seed in range(6)]
    finding = AlgorithmResults.read(make_trials(grpo=good, ppo=bad))
    assert isinstance(finding, AlgorithmResults)
    (contest,) = finding.document()["algorithms"]
    assert contest["best"] == "GRPO"
    first, second = contest["results"]
    assert (first["episodes_to_threshold"], first["censored_seeds"]) == (39.0, 0)
    assert (second["episodes_to_threshold"], second["censored_seeds"]) == (None, 6)
    assert contest["comparisons"][0]["p_episodes"] < 0.05


def test_what_never_converged_within_a_short_budget_is_not_called_slow_nor_fewest() -> None:
    finding = AlgorithmResults.read(make_trials(grpo=[[0.3] * 90] * 3, ppo=[[0.4] * 90] * 3))
    assert isinstance(finding, AlgorithmResults)
    (contest,) = finding.document()["algorithms"]
    assert {result["convergence_grade"] for result in contest["results"]} == {"unsure"}
    tile = finding.tiles()[1]
    assert (tile.label, tile.value) == ("episodes to 80 %", "more than 300")
    assert "fewest" not in tile.note


def test_a_crashed_seed_has_its_number_and_counts_in_the_gain() -> None:
    (trial,) = make_trials(grpo=[[0.9] * 90] * 3)
    *ok, last = trial.executions
    crashed = replace(last, status=Status.CRASHED, measurements={}, detail=None, error="killed")
    (summary,) = summarise_algorithms([replace(trial, executions=[*ok, crashed])])
    assert [seed.seed for seed in summary.seeds] == [42, 43, 44]
    assert summary.gain is not None
    assert summary.gain[0] == pytest.approx((0.8 + 0.8 - 0.1) / 3)
    (alone,) = summarise_algorithms([replace(trial, executions=[crashed])])
    assert (alone.seeds[0].label, alone.gain) == ("process 2", None)


@pytest.mark.parametrize("changed", [{"episodes": 50}, {"group_size": 4}, {"threshold": 0.5}, {"window": 5}])
def test_different_budgets_are_never_ranked_against_each_other(changed: dict[str, Any]) -> None:
    first, second = make_trials(grpo=[[0.9] * 90] * 3, ppo=[[0.5] * 90] * 3)
    point = second.stored.trial
    other = replace(point, params={**point.params, **changed})
    finding = AlgorithmResults.read([first, replace(second, stored=replace(second.stored, trial=other))])
    assert isinstance(finding, AlgorithmResults)
    assert [contest["comparisons"] for contest in finding.document()["algorithms"]] == [[], []]
    one, two = (section for section in finding.sections(with_charts=False) if "answers" in section.subtitle)
    assert one.subtitle != two.subtitle


def test_simulated_and_measured_are_never_ranked_against_each_other() -> None:
    first, second = make_trials(grpo=[[0.9] * 90] * 3, ppo=[[0.5] * 90] * 3)
    finding = AlgorithmResults.read([first, replace(second, applied={"simulated": True})])
    assert isinstance(finding, AlgorithmResults)
    assert [contest["simulated"] for contest in finding.document()["algorithms"]] == [False, True]


def test_the_highest_mean_is_not_ahead_of_one_that_the_test_favours() -> None:
    good = [[0.2] * 30 + [0.9 + seed / 100] * 60 for seed in range(6)]
    bad = [[0.2] * 60 + [0.5 + seed / 100] * 30 for seed in range(6)]
    first, second = summarise_algorithms(make_trials(grpo=good, ppo=bad))
    (duel,) = compare_pairs([first, second])
    assert duel.find_ahead() is duel.find_ahead(by_episodes=True) is first
    turned = replace(duel, improvement=duel.improvement._replace(value=0.0))
    contest = AlgorithmContest((first, second), (turned,))
    assert contest.find_ahead() == (first, [])
    assert "tied" not in describe_contest(contest)[0]


def test_what_is_read_back_is_what_trained(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECIPES, "ppo", RECIPES["dpo"])
    (trial,) = run_comparison(assay_inline, "ppo", seeds=1)["trials"]
    assert trial["applied"] == {"algorithm": "dpo", "backend": "native", "task": "arithmetic"}


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ("algorithm=grop", "grpo"),
        ("episodes=0", "episodes"),
        ("group_size=1", "group_size"),
        ("model=gpt2", "trl"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_runs(
    assay_inline: AssayInline, setting: str, word: str
) -> None:
    assert word in assay_inline.run_inline("algorithm", "--set", setting).refusal


def test_the_reporter_refuses_a_run_without_algorithms(assay_inline: AssayInline) -> None:
    done = assay_inline.run_inline("noop", "--report", "algorithm_comparison")
    assert done.code == 2
