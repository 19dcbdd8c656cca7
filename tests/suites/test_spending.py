"""What a run costs: how that is known, what judges add to it, and whether a budget can hold."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
from tests.command import AssayInline
from tests.suites.project import Stored, numbers, python_agent, suite
from tests.wording import Wording

from assay.execute.budget import known_tokens
from assay.model import RunState

AGENTS = """
def plain(text):
    return text

def calling(text):
    return {"output": text, "model": "gpt-4o-mini", "usage": {"input_tokens": 1000, "output_tokens": 500}}

def telling(text):
    return {"output": text, "usd": 0.01, "usage": {"input_tokens": 3, "output_tokens": 2}}

def obscure(text):
    return {"output": text, "model": "nobody-knows-it-1", "usage": {"input_tokens": 3, "output_tokens": 2}}

def judge(text):
    return {"output": '{"score": 5}', "usd": 0.1, "usage": {"input_tokens": 90, "output_tokens": 10}}

def secretive(text):
    return {"output": '{"score": 5}', "model": "nobody-knows-it-1"}
"""
PRICED = {
    "name": "priced",
    "type": "python",
    "target": "agents.py:obscure",
    "price": {"input": 2, "output": 4},
}


def write(assay: AssayInline, agents: list[Any], cases: int = 2, **benchmark: Any) -> None:
    assay.write("agents.py", AGENTS)
    assay.write("s.yaml", suite(numbers(cases), agents, benchmark=benchmark))


def judged_by(agent: str) -> dict[str, Any]:
    return {"name": "judge", "agent": agent, "disagreement_sample": 0}


def test_every_format_says_how_a_cost_is_known(assay_inline: AssayInline, wording: Wording) -> None:
    names = ("plain", "calling", "telling", "obscure")
    free = python_agent("plain", price="free") | {"name": "free"}
    write(assay_inline, [*(python_agent(name) for name in names), PRICED, free])
    done = assay_inline.run_inline("s.yaml", "--json", "--report", "html,md", "--out", "out").json
    by_agent = {trial["agent"]["name"]: trial for trial in done["trials"]}
    assert [by_agent[name].get("cost_sources") for name in (*names, "priced", "free")] == [
        None, ["list"], ["reported"], None, ["price"], None
    ]  # fmt: skip
    assert by_agent["free"]["usd_per_solved"] == 0
    assert by_agent["plain"]["usd_per_solved"] is None
    assert by_agent["obscure"]["usd_per_solved"] is None
    prices = by_agent["calling"]["price_list"]
    assert prices["name"].startswith("genai-prices ")
    assert "2024-01-01" < prices["date"] <= done["started"][:10]
    shown = assay_inline("show", "last", COLUMNS="200").out
    told = [line.removeprefix("$ ").rstrip() for line in shown.splitlines() if line.startswith("$ ")]
    assert [line.partition(":")[0] for line in told] == ["calling", "telling", "priced"]
    assert prices["name"] in told[0]
    assert prices["date"] in told[0]
    wording("\n".join(told).replace(prices["name"], "LIST").replace(prices["date"], "DATE"))
    page = (assay_inline.folder / "out" / "report.html").read_text()
    text = (assay_inline.folder / "out" / "report.md").read_text().replace("\\", "")
    for said in (page, text):
        assert [line for line in told if line not in said] == []
        assert "plain: cost" not in said


def test_half_of_the_tokens_make_no_cost_unless_the_other_half_is_free(assay_inline: AssayInline) -> None:
    """Tokens that nobody counted are not 0 tokens."""
    half = 'def half(text): return {"output": text, "model": "gpt-4o-mini", "usage": {"input_tokens": 1000}}'
    prices = {"both": {"input": 2, "output": 4}, "one": {"input": 2}}
    named = [python_agent("half", price=price) | {"name": name} for name, price in prices.items()]
    assay_inline.write("agents.py", half)
    assay_inline.write("s.yaml", suite(numbers(2), [python_agent("half"), *named]))
    done = assay_inline.run_inline("s.yaml", "--json").json
    costs = {trial["agent"]["name"]: trial["usd_per_solved"] for trial in done["trials"]}
    assert costs == {"half": None, "both": None, "one": pytest.approx(0.002)}


def test_half_of_the_tokens_are_no_number_of_tokens_and_may_still_be_too_many(
    assay_inline: AssayInline,
) -> None:
    half = 'def half(text): return {"output": text, "usage": {"input_tokens": 1000}}'
    assay_inline.write("agents.py", half)
    assay_inline.write("s.yaml", suite(numbers(2), [python_agent("half")]))
    [trial] = assay_inline.run_inline("s.yaml", "--json").json["trials"]
    assert (trial["outcomes"]["pass"], trial["tokens_per_solved"]) == (2, None)
    assert known_tokens({"input_tokens": 1000.0}) == 1000
    assay_inline.write(
        "s.yaml", suite(numbers(2), [python_agent("half")], benchmark={"limits": {"tokens": 10}})
    )
    assert assay_inline.run_inline("s.yaml", "-q").code == 1
    assert Stored(assay_inline.folder).counts() == {"over_limit": 2}


def test_a_case_says_how_its_cost_is_known_and_what_judging_took(
    assay_inline: AssayInline, wording: Wording
) -> None:
    write(assay_inline, [python_agent("telling"), python_agent("judge")], scorer=judged_by("judge"))
    assert assay_inline.run_inline("s.yaml", "-q", "--agent", "telling").code == 0
    shown = assay_inline("show", "last", "--case", "c0", COLUMNS="200").out
    assert "$0.01" in shown
    cost, judging = shown.rstrip().splitlines()[-2:]
    assert cost.startswith("cost ")
    assert {"1", "100", "$0.10"} <= set(judging.split())
    wording(f"{cost}\n{judging}")


def test_a_judge_is_paid_by_the_harness_and_not_by_the_agent(
    assay_inline: AssayInline, wording: Wording
) -> None:
    write(assay_inline, [python_agent("telling"), python_agent("judge")], cases=3, scorer=judged_by("judge"))
    done = assay_inline.run_inline("s.yaml", "--json", "--agent", "telling", "--warmup", "1").json
    (trial,) = done["trials"]
    assert trial["usd_per_solved"] == pytest.approx(0.01)
    assert trial["tokens_per_solved"] == 5
    assert trial["judging"] == {"calls": 4, "tokens": 400, "usd": pytest.approx(0.4)}
    assert "judge_usd" not in trial["metrics"]
    [told] = [line for line in assay_inline("show", COLUMNS="200").out.splitlines() if "$0.40" in line]
    assert {"4", "400"} <= set(told.split())
    wording(told)


def test_a_rubric_passes_on_what_its_judges_took(assay_inline: AssayInline) -> None:
    criteria = [
        {"name": "right", "scorer": {**judged_by("judge"), "agent": python_agent("judge") | {"folder": "."}}},
        {"name": "there", "contains": ["0"]},
    ]
    write(assay_inline, [python_agent("telling")], cases=1, scorer={"name": "rubric", "criteria": criteria})
    assert assay_inline.run_inline("s.yaml", "-q").code == 0
    (made,) = Stored(assay_inline.folder).measured
    assert (made.measurements["judge_usd"], made.measurements["judge_calls"]) == (0.1, 1)
    assert made.measurements["usd"] == 0.01


def test_a_judge_that_is_an_agent_with_a_price_keeps_it(assay_inline: AssayInline) -> None:
    agents = [python_agent("plain"), {**PRICED, "name": "judge"}]
    write(assay_inline, agents, cases=1, scorer=judged_by("judge"))
    # It gives no mark, so nothing is scored; what it was asked is paid for all the same.
    assert assay_inline.run_inline("s.yaml", "-q", "--agent", "plain").code == 1
    (made,) = Stored(assay_inline.folder).measured
    assert made.measurements["judge_usd"] == pytest.approx((3 * 2 + 2 * 4) / 1e6)


@pytest.mark.parametrize(("option", "value"), [("--budget-usd", "0.5"), ("--budget-tokens", "500")])
def test_what_judges_take_counts_towards_the_budget(
    assay_inline: AssayInline, option: str, value: str
) -> None:
    agents = [python_agent("plain"), python_agent("judge")]
    write(assay_inline, agents, cases=500, scorer=judged_by("judge"))
    done = assay_inline.run_inline("s.yaml", "-q", "--agent", "plain", "--repetitions", "20", option, value)
    assert done.code == 1
    assert Stored(assay_inline.folder).run.state is RunState.OVER_BUDGET


def test_judging_again_tells_what_it_took_and_adds_it_up(assay_inline: AssayInline, wording: Wording) -> None:
    write(assay_inline, [python_agent("plain"), python_agent("judge")], scorer=judged_by("judge"))
    assert assay_inline.run_inline("s.yaml", "-q", "--agent", "plain").code == 0
    [told] = [line for line in assay_inline("rescore", "last").err.splitlines() if "$0.20" in line]
    assert {"2", "200"} <= set(told.split())
    wording(told)
    again = assay_inline("rescore", "last", "--json").json
    assert again["spent"] == {"calls": 2, "tokens": 200, "usd": pytest.approx(0.2)}
    assert again["trials"][0]["judging"] == {"calls": 6, "tokens": 600, "usd": pytest.approx(0.6)}


def test_a_cost_that_cannot_be_known_is_reported_before_the_run_when_there_is_a_budget(
    assay_inline: AssayInline, wording: Wording
) -> None:
    web = {"name": "web", "type": "http", "url": "http://127.0.0.1:9/ask", "retries": 0}
    gpt = {"name": "gpt", "type": "openai", "model": "gpt-4o-mini", "base_url": "http://127.0.0.1:9"}
    known = {**gpt, "name": "known", "price": {"input": 1, "output": 1}}
    scorer = {**judged_by("x"), "agent": {"name": "critic", "type": "http", "url": "http://127.0.0.1:9"}}
    free = python_agent("plain", price="free") | {"name": "free"}
    agents = [web, gpt, known, python_agent("plain"), free, {"name": "sim", "type": "simulated"}]
    write(assay_inline, agents, scorer=scorer)
    told = [
        line
        for line in assay_inline.run_inline("s.yaml", "--dry-run", "--budget-usd", "1").err.splitlines()
        if line.startswith("Warning")
    ]
    assert [line.split("'")[1] for line in told] == ["web", "gpt", "plain", "critic"]
    assert all("usd" in line for line in told)
    assert "judge 'critic'" in told[-1]
    wording("\n".join(told))
    planned = assay_inline.run_inline("s.yaml", "--dry-run", "--budget-tokens", "9", "--json")
    seen = [line for line in planned.err.splitlines() if line.startswith("Warning")]
    assert [line.split("'")[1] for line in seen] == ["web", "plain", "critic"]
    assert all("tokens" in line for line in seen)
    assert [one["code"] for one in planned.json["warnings"]] == ["budget"] * 3
    assert "Warning" not in assay_inline.run_inline("s.yaml", "--dry-run").err


@pytest.mark.parametrize("kind", ["python", "command", "http", "openai", "recorded"])
def test_every_type_of_agent_may_say_that_it_is_free(assay_inline: AssayInline, kind: str) -> None:
    options: dict[str, dict[str, Any]] = {
        "python": {"target": "agents.py:plain"},
        "command": {"command": ["cat"]},
        "http": {"url": "http://127.0.0.1:9/ask"},
        "openai": {"model": "gpt-4o-mini", "base_url": "http://127.0.0.1:9/v1"},
        "recorded": {"answers": "answers.jsonl"},
    }
    assay_inline.write("answers.jsonl", '{"id": "c0", "output": "0"}\n')
    write(assay_inline, [{"name": "free", "type": kind, "price": "free", **options[kind]}])
    planned = assay_inline(
        "run", "s.yaml", "--dry-run", "--budget-usd", "1", "--budget-tokens", "9", "--json"
    )
    assert "budget" not in [one["code"] for one in planned.json["warnings"]]
    assert planned.json["trials"][0]["expected_basis"]["usd"]["basis"] == "free"


def test_the_cost_of_an_agent_that_reports_no_usage_is_unknown_unless_it_says_that_it_is_free(
    assay_inline: AssayInline,
) -> None:
    program = "import json, sys\nfor line in sys.stdin:\n    asked = json.loads(line)\n    print(json.dumps({'id': asked['id'], 'output': asked['input']}), flush=True)\n"
    assay_inline.write("echo.py", program)
    command = {"name": "program", "type": "command", "command": ["python3", "echo.py"]}
    free = {**command, "name": "free", "price": "free"}
    write(assay_inline, [python_agent("plain"), command, free])
    done = assay_inline.run_inline("s.yaml", "--json").json
    costs = {
        trial["agent"]["name"]: (trial["ratings"]["cost"]["value"], trial["usd_per_solved"])
        for trial in done["trials"]
    }
    assert costs == {"plain": (None, None), "program": (None, None), "free": (1.0, 0.0)}
    used = {
        one.case for one in Stored(assay_inline.folder).by_trial["b · plain"] if "usd" in one.measurements
    }
    assert used == set()


def test_a_price_that_is_neither_free_nor_a_price_is_refused_with_its_line(
    assay_inline: AssayInline, wording: Wording
) -> None:
    write(assay_inline, [python_agent("plain", price="cheap")])
    done = assay_inline("validate", "s.yaml")
    assert done.code == 2
    [told] = [line for line in (done.out + done.err).splitlines() if "s.yaml:1: agents.0.price: " in line]
    assert "'free'" in told
    wording(told)


def test_public_models_that_the_list_does_not_know_are_reported_before_the_run(
    assay_inline: AssayInline,
) -> None:
    models = ("gpt-4o-mini", "nobody-knows-it-1")
    agents = [{"name": model, "type": "openai", "model": model, "api_key": "unused"} for model in models]
    write(assay_inline, agents)
    told = assay_inline.run_inline("s.yaml", "--dry-run", "--budget-usd", "1").err
    assert "agent 'nobody-knows-it-1'" in told
    assert "agent 'gpt-4o-mini'" not in told


def _budget_doubts(assay: AssayInline) -> list[dict[str, Any]]:
    warnings = json.loads(assay("show", "last", "--json").out)["warnings"]
    return [doubt for doubt in warnings if doubt["code"] == "budget"]


def test_an_unknown_cost_makes_a_budget_doubtful(assay_inline: AssayInline, wording: Wording) -> None:
    agents = [
        python_agent("plain", price="free"),
        python_agent("obscure"),
        python_agent("telling"),
        python_agent("secretive"),
    ]
    write(assay_inline, agents, cases=3, scorer=["exact", judged_by("secretive")])
    asked = ["--agent", "plain", "--agent", "obscure", "--agent", "telling"]
    assert assay_inline.run_inline("s.yaml", "-q", *asked, "--budget-usd", "5").code == 0
    told = _budget_doubts(assay_inline)
    [(of_judges, three), (of_agent, one)] = Counter(doubt["message"] for doubt in told).most_common()
    assert (three, one) == (3, 1)
    assert [doubt["trial"] for doubt in told if doubt["message"] == of_agent] == ["b · obscure"]
    assert re.findall(r"\d+", of_judges) == ["3", "3"]
    wording(of_agent)
    wording(of_judges)


def test_without_a_budget_an_unknown_cost_is_no_doubt(assay_inline: AssayInline) -> None:
    write(assay_inline, [python_agent("obscure")])
    assert assay_inline.run_inline("s.yaml", "-q").code == 0
    assert _budget_doubts(assay_inline) == []


def test_a_budget_of_tokens_is_doubtful_where_a_paid_agent_counts_none(
    assay_inline: AssayInline, wording: Wording
) -> None:
    silent = {"name": "silent", "type": "simulated", "seconds": 0}
    write(assay_inline, [python_agent("plain", price="free"), python_agent("secretive"), silent])
    assert assay_inline.run_inline("s.yaml", "-q", "--budget-tokens", "9999").code in (0, 1)
    (told,) = _budget_doubts(assay_inline)
    assert told["trial"] == "b · secretive"
    assert re.findall(r"\d+|tokens", told["message"])[:3] == ["2", "2", "tokens"]
    wording(told["message"])
