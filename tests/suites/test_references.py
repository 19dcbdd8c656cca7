"""What ratings are relative to. Recorded answers cost exactly what their file says, so every rating of cost is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.command import AssayInline
from tests.services import Postgres
from tests.suites.project import numbers, suite
from tests.wording import Wording

CASES = 4


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def project(request: pytest.FixtureRequest, assay_inline: AssayInline) -> Project:
    if request.param == "sqlite":
        return Project(assay_inline, f"sqlite:///{assay_inline.folder / 'own.db'}")
    server: Postgres = request.getfixturevalue("postgres")
    return Project(assay_inline, server.empty())


@pytest.fixture
def local(assay_inline: AssayInline) -> Project:
    return Project(assay_inline, f"sqlite:///{assay_inline.folder / 'own.db'}")


class Project:
    def __init__(self, assay: AssayInline, url: str) -> None:
        self.assay, self.url, self.agents = assay, url, dict[str, Any]()

    def __call__(self, *arguments: str) -> Any:
        return self.assay(*arguments, "--json", "--db", self.url).json

    def has(self, **usd: float | None) -> None:
        """Agents that answer every case rightly for so much; None is an agent that fails every time."""
        for name, price in usd.items():
            answer = {"error": "no"} if price is None else {"usd": price}
            lines = [
                json.dumps({"id": case["id"], "output": case["expected"], "seconds": 0.5, **answer})
                for case in numbers(CASES)
            ]
            self.assay.write(f"{name}.jsonl", "\n".join(lines))
            self.agents[name] = {"name": name, "type": "recorded", "answers": f"{name}.jsonl"}
        self.write()

    def write(self, cases: int = CASES, agents: tuple[Any, ...] = (), **benchmark: Any) -> None:
        every = [*self.agents.values(), *agents]
        self.assay.write("s.yaml", suite(numbers(cases), every, benchmark=benchmark))

    def run(self, *agents: str, more: tuple[str, ...] = (), code: int = 0) -> str:
        chosen = [part for name in agents for part in ("--agent", name)]
        done = self.assay.run_inline("s.yaml", *chosen, *more, "--json", "--db", self.url)
        assert done.code == code, done.err
        return str(json.loads(done.out)["run_id"])

    def cost(self, ref: str = "last") -> dict[str, float | None]:
        return {t["agent"]["name"]: t["ratings"]["cost"]["value"] for t in self("show", ref)["trials"]}

    def reference(self, quantity: str = "usd", *arguments: str, simulated: bool = False) -> dict[str, Any]:
        found = self("suite", "reference", "s.yaml", *arguments)["references"]
        return next(
            dict(one) for one in found if (one["quantity"], one["simulated"]) == (quantity, simulated)
        )

    def board(self) -> dict[str, float | None]:
        [board] = self("leaderboard")
        return {row["agent"]: row["dimensions"]["cost"] for row in board["standings"]}


def test_the_first_completed_run_is_the_reference_of_itself_and_of_every_later_run(project: Project) -> None:
    project.has(cheap=1.0, fair=2.0, dear=4.0, later=6.0)
    first = project.run("cheap", "fair", "dear")
    assert project.cost(first) == pytest.approx({"cheap": 2 / 3, "fair": 1 / 2, "dear": 1 / 3})
    reference = project.reference()
    assert (reference["value"], reference["source"], reference["run_id"]) == (2.0, "run", first)
    second = project.run("later")
    assert project.cost(second) == pytest.approx({"later": 1 / 4})
    assert project.reference() == reference


def test_naming_a_baseline_changes_no_rating(project: Project) -> None:
    project.has(cheap=1.0, dear=4.0)
    project.run("cheap")
    project.run("dear")
    before = project("leaderboard")
    for arguments in (("set", "main", "last"), ("set", "s", "last"), ("delete", "main"), ("delete", "s")):
        assert project("baseline", *arguments)["rated_again"] == 0
        assert project("leaderboard") == before
        assert project.board() == pytest.approx({"cheap": 1 / 2, "dear": 1 / 5})


def test_setting_another_reference_rates_every_run_again_and_says_what_changed(project: Project) -> None:
    project.has(cheap=1.0, dear=3.0)
    first, second = project.run("cheap"), project.run("dear")
    change = project("suite", "reference", "s.yaml", "--set", second)
    assert (change["set"], change["rated_again"]) == (second, 2)
    usd = next(one for one in change["changed_references"] if one["quantity"] == "usd")
    assert (usd["before"], usd["after"]) == (1.0, 3.0)
    changed = {(one["run_id"], one["agent"]): one for one in change["changed_ratings"]}
    costs = {key: (one["before"]["cost"], one["after"]["cost"]) for key, one in changed.items()}
    assert costs == {
        (first, "cheap"): pytest.approx((1 / 2, 3 / 4)),
        (second, "dear"): pytest.approx((1 / 4, 1 / 2)),
    }
    assert project.board() == pytest.approx({"cheap": 3 / 4, "dear": 1 / 2})
    assert project.reference()["origin"] == "chosen"
    assert project.cost(first) == pytest.approx({"cheap": 3 / 4})
    project.run("cheap")
    assert project.reference()["run_id"] == second


def test_a_run_that_failed_is_no_reference_and_is_rated_once_there_is_one(local: Project) -> None:
    local.has(cheap=1.0, broken=None)
    failed = local.run("cheap", "broken", code=1)
    assert (local.cost(failed)["cheap"], local.reference()["source"]) == (None, None)
    local.has(dear=3.0)
    completed = local.run("dear")
    assert local.reference()["run_id"] == completed
    assert local.cost(failed)["cheap"] == pytest.approx(3 / 4)
    assert local.board()["cheap"] == pytest.approx(3 / 4)


def test_half_the_limit_is_the_reference_until_a_run_is_completed(local: Project) -> None:
    local.has(cheap=1.0, broken=None)
    local.write(limits={"usd": 6.0})
    failed = local.run("cheap", "broken", code=1)
    assert local.cost(failed)["cheap"] == pytest.approx(3 / 4)
    assert local.reference()["source"] == "limit"
    local.run("cheap")
    assert local.cost(failed)["cheap"] == pytest.approx(1 / 2)


def test_a_rubric_goes_before_the_first_run(local: Project) -> None:
    local.has(cheap=1.0)
    local.run("cheap")
    local.write(rubric={"reference": {"usd": 3.0}})
    assert local.cost(local.run("cheap")) == pytest.approx({"cheap": 3 / 4})
    assert local.reference() | {"hash": ""} == {
        "benchmark": "b",
        "hash": "",
        "simulated": False,
        "dimension": "cost",
        "quantity": "usd",
        "value": 3.0,
        "source": "rubric",
    }


def test_a_run_of_some_cases_is_the_reference_only_until_one_of_all_is_completed(local: Project) -> None:
    local.has(cheap=1.0, dear=3.0)
    some = local.run("cheap", more=("--limit", "2"))
    assert local.cost(some) == pytest.approx({"cheap": 1 / 2})
    assert local.reference()["origin"] == "partial"
    whole = local.run("dear")
    assert (local.reference()["run_id"], local.reference()["origin"]) == (whole, "first")
    assert local.cost(some) == pytest.approx({"cheap": 3 / 4})
    local.run("cheap", more=("--limit", "2"))
    local.run("cheap")
    assert local.reference()["run_id"] == whole


def test_the_reference_stays_when_its_run_is_deleted(project: Project) -> None:
    project.has(cheap=1.0, dear=3.0)
    first, _ = project.run("cheap"), project.run("dear")
    assert project.assay("runs", "delete", first, "--yes", "--db", project.url).code == 0
    assert project.reference()["run_id"] == first
    assert project.cost() == pytest.approx({"dear": 1 / 4})


def test_another_definition_of_the_same_suite_has_a_reference_of_its_own(
    local: Project, wording: Wording
) -> None:
    local.has(cheap=1.0, dear=3.0)
    first = local.run("cheap")
    local.write(cases=CASES - 1)
    assert local.reference()["source"] is None
    second = local.run("dear")
    assert local.cost(second) == pytest.approx({"dear": 1 / 2})
    assert local.reference()["run_id"] == second
    assert local.cost(first) == pytest.approx({"cheap": 1 / 2})
    refusal = local.assay("suite", "reference", "s.yaml", "--set", first, "--db", local.url).refusal
    assert first in refusal
    wording(refusal.replace(first, "RUN"))


def test_simulated_agents_are_no_reference_for_measured_ones(local: Project) -> None:
    dream = {"name": "dream", "type": "simulated", "seconds": 0.0, "usd": 100.0, "quality": 1.0}
    local.has(cheap=1.0)
    local.write(agents=(dream,))
    local.run("dream", "cheap")
    assert local.cost() == pytest.approx({"cheap": 1 / 2, "dream": 1 / 2})
    assert local.reference()["value"] == 1.0
    assert local.reference(simulated=True)["value"] == pytest.approx(100.0)


def test_the_first_run_that_tells_a_cost_is_the_reference_of_cost(local: Project) -> None:
    """Agents that cost nothing tell none."""
    local.has(free=0.0, paid=2.0)
    first = local.run("free")
    assert local.cost(first) == {"free": 1.0}
    second = local.run("paid")
    assert local.reference("seconds")["run_id"] == first
    assert local.reference("usd")["run_id"] == second
    assert local.cost(second) == pytest.approx({"paid": 1 / 2})


def test_a_run_of_another_suite_is_refused_as_the_reference(local: Project, wording: Wording) -> None:
    local.has(cheap=1.0)
    local.run("cheap")
    local.assay.write("other.yaml", suite(numbers(2), list(local.agents.values()), suite="other"))
    assert local.assay.run_inline("other.yaml", "-q", "--db", local.url).code == 0
    other = local("show", "last")["run_id"]
    refusal = local.assay("suite", "reference", "s.yaml", "--set", "last", "--db", local.url).refusal
    assert other in refusal
    assert "'s'" in refusal
    wording(refusal.replace(other, "RUN"))


def test_show_leaderboard_and_report_say_where_the_reference_comes_from(
    local: Project, tmp_path: Path
) -> None:
    local.has(cheap=1.0)
    run = local.run("cheap")
    [trial] = local("show", run)["trials"]
    assert trial["references"]["usd"]["run_id"] == run
    [board] = local("leaderboard")
    assert {one["run_id"] for one in board["references"]} == {run}
    for command in (("show", run), ("leaderboard",), ("suite", "reference", "s")):
        assert f"run {run}, 20" in " ".join(
            local.assay(*command, "--db", local.url, COLUMNS="200").out.split()
        )
    files = local.assay("report", run, "--format", "md,html", "--out", "out", "--db", local.url)
    assert files.code == 0
    for file in (tmp_path / "out").rglob("*.*"):
        if file.suffix in (".md", ".html"):
            assert f"(run {run}, 20" in file.read_text()
