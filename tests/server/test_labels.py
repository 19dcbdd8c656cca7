"""People label answers, and scorers are held against them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint
from tests.command import Assay
from tests.server.service import Service, serving

from assay.analysis.review.agreement import compute_agreements, compute_kappa
from assay.model.label import LabelledScore
from assay.server.labels import AgreementList, LabelList, LabelPage


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, played: Path) -> Iterator[tuple[Service, Path]]:
    """A server whose results may be labelled."""
    folder = tmp_path_factory.mktemp("labels")
    shutil.copytree(played, folder, dirs_exist_ok=True)
    with serving(folder) as service:
        yield service, folder


def find_trial(service: Service, agent: str) -> int:
    [trial] = service.get("/trials", agent_id=agent).document["results"]
    return int(trial["id"])


@pytest.mark.parametrize("table", [(20, 15, 5, 10), (1, 0, 0, 3), (0, 7, 2, 0), (3, 3, 3, 3)])
def test_kappa_is_that_of_statsmodels(table: tuple[int, int, int, int]) -> None:
    both_pass, both_fail, only_first, only_second = table
    known = cohens_kappa(np.array([[both_pass, only_first], [only_second, both_fail]]), return_results=False)
    assert compute_kappa(*table) == pytest.approx(known)


def test_kappa_is_not_defined_where_everybody_always_says_the_same() -> None:
    assert compute_kappa(9, 0, 0, 0) is None
    assert compute_kappa(0, 0, 0, 0) is None


def scores(case: int, number: int, *, agrees: bool) -> list[LabelledScore]:
    return [LabelledScore("s", "b", "exact", 1, f"c{case}", True, agrees)] * number


def test_ten_labels_of_one_case_say_less_than_ten_of_ten_cases() -> None:
    many = compute_agreements(one for case in range(10) for one in scores(case, 1, agrees=case < 8))[0]
    few = compute_agreements(
        [one for case in range(2) for one in scores(case, 5, agrees=True)][:8] + scores(2, 2, agrees=False)
    )[0]
    assert (many.share.count, few.share.count, few.cases) == (8, 8, 3)
    low, high = proportion_confint(8, 10, method="wilson")
    assert (many.share.low, many.share.high) == pytest.approx((low, high))
    assert few.share.low is not None
    assert few.share.low < low


def test_labels_are_kept_with_who_gave_them_and_agreement_is_computed(own: tuple[Service, Path]) -> None:
    service, _ = own
    good, bad = find_trial(service, "good"), find_trial(service, "bad")
    given = service.post("/labels", trial_id=good, case="c1", label="pass").document
    assert [(one.case, one.by) for one in LabelList.model_validate(given).labels] == [("c1", "local")] * 3
    service.post("/labels", trial_id=bad, case="c1", label="fail", note="says ?")
    # The scorer is right about c4; this person is not.
    first = service.get(f"/trials/{bad}/executions", case="c4").document["executions"][0]["seq"]
    service.post("/labels", trial_id=bad, case="c4", seq=first, label="fail")
    page = LabelPage.model_validate(service.get("/labels").document)
    assert len(page.labels) == 7
    assert (
        service.get("/labels", limit=3, cursor=page.labels[3].id).document["labels"][0]["id"]
        == page.labels[4].id
    )
    assert len(service.get("/labels", trial_id=bad, case="c1").document["labels"]) == 3
    assert service.get("/labels", by="nobody").document["labels"] == []
    found = AgreementList.model_validate(service.get("/labels/agreement").document).agreements
    whole = next(one for one in found if one.scorer is None)
    assert (whole.both_pass, whole.both_fail, whole.only_person_passes, whole.only_scorer_passes) == (
        3,
        3,
        0,
        1,
    )
    assert (whole.labels, whole.cases, whole.agreement.count) == (7, 2, 6)
    assert whole.kappa == pytest.approx(compute_kappa(3, 3, 0, 1))
    assert service.get("/labels/agreement", suite_id="other").document["agreements"] == []


def test_a_second_label_of_a_person_replaces_the_first(own: tuple[Service, Path]) -> None:
    service, _ = own
    trial = find_trial(service, "good")
    for label in ("fail", "pass"):
        service.post("/labels", trial_id=trial, case="c7", label=label)
    assert [one["label"] for one in service.get("/labels", case="c7").document["labels"]] == ["pass"] * 3


@pytest.mark.parametrize(
    ("changes", "status"),
    [({"trial_id": 999}, 404), ({"case": "nope"}, 404), ({"seq": 99999}, 404), ({"label": "maybe"}, 422),
     ({"note": "x" * 2001}, 422), ({"author": "ann"}, 422), ({"seq": -1}, 422)],
)  # fmt: skip
def test_what_cannot_be_labelled_is_refused(
    own: tuple[Service, Path], changes: dict[str, object], status: int
) -> None:
    service, _ = own
    asked = {"trial_id": find_trial(service, "good"), "case": "c1", "label": "pass", **changes}
    assert service.post("/labels", **asked).status == status


def test_the_command_labels_too(own: tuple[Service, Path]) -> None:
    service, folder = own
    assay = Assay(folder)
    done = assay("label", "last", "fail", "--case", "c9", "--agent", "bad", "--note", "why", "--json").json
    assert [(one["case"], one["label"], one["note"]) for one in done["labels"]] == [("c9", "fail", "why")] * 3
    assert done["agreements"][0]["labels"] >= 3
    assert len(service.get("/labels", case="c9").document["labels"]) == 3
    assert "kappa" in assay("label", "last", "fail", "--case", "c9", "--agent", "bad").out
    assert "--agent" in assay("label", "last", "pass", "--case", "c9").refusal
    assert "nope" in assay("label", "last", "pass", "--case", "nope").refusal


def test_labels_go_with_their_run(own: tuple[Service, Path], tmp_path: Path) -> None:
    _, folder = own
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    assay = Assay(tmp_path)
    assay("label", "last", "fail", "--case", "c9", "--agent", "bad")
    for run in assay("runs", "list", "--json").json:
        assert assay("runs", "delete", run["id"], "--yes").code == 0
    assert assay("db", "info", "--json").json["rows"]["labels"] == 0
