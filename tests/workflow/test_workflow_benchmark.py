"""One prompt across several models: figures, files, and what is refused."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.command import AssayInline
from tests.wording import Wording

from assay.builtin.experiments.workflow_task import make_data, reference_plan
from assay.workflow import BenchmarkMetrics, BenchmarkRunner, BenchmarkVisualizer

PLOTS = {"execution_time", "success_rate", "smart_resume_metrics", "resource_usage", "model_comparison"}
QUICK = ("--set", "rows=40", "--isolation", "inline", "--repetitions", "1")


def define(assay: AssayInline, **answers: object) -> None:
    agents = [{"name": name, "type": "stub", "answer": answer} for name, answer in answers.items()]
    assay.write("agents.yaml", json.dumps({"agents": agents}))
    assay.write("assay.toml", '[assay]\nagents = ["agents.yaml"]\n')


@pytest.mark.usefixtures("bubblewrap")
def test_models_are_compared_in_one_call_and_all_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runner = BenchmarkRunner(options={"isolation": "inline", "seed": 3})
    done = asyncio.run(runner.run_benchmark(None, ["reference", "nop"], 1, "a try", rows=40))

    assert done["benchmark_id"] == done.benchmark_id == done.result.run_id
    assert done.benchmark_dir.parent == Path("benchmarks")
    kinds = {path.name.rpartition("_")[0] for path in done.benchmark_dir.glob("*_*.json")}
    assert {"metadata", "results", "summary", "visualizations"} <= kinds
    assert {path.stem for path in done.benchmark_dir.glob("*.png")} == PLOTS
    summary = read(done.benchmark_dir, "summary")
    reference, nop = (summary["model_summaries"][name] for name in ("reference", "nop"))
    assert (reference["success_rate"], nop["success_rate"]) == (1.0, 0.0)
    assert (reference["right_results"], reference["steps_done"], reference["plan_f1"]) == (1.0, 8.0, 1.0)
    assert (reference["resume_detected_share"], reference["steps_wrongly_skipped"]) == (1.0, 0.0)
    assert reference["memory_usage"] > 0
    assert nop["avg_duration"] is None
    assert nop["failures"] == {"plan: not_json": 1}
    assert summary["comparison"]["best_success_rate"]["model"] == "reference"
    assert read(done.benchmark_dir, "metadata")["description"] == "a try"
    rows = list(csv.DictReader(next(done.benchmark_dir.glob("data_*.csv")).read_text().splitlines()))
    assert [row["status"] for row in rows] == ["success", "invalid_output"]
    assert BenchmarkMetrics(done.result).summary()["reference"]["tools_used"]["sort"] == 4
    assert set(BenchmarkVisualizer(tmp_path / "again").visualize(done.result)) == PLOTS


def read(folder: Path, kind: str) -> Any:
    return json.loads(next(folder.glob(f"{kind}_*.json")).read_text())


@pytest.mark.usefixtures("bubblewrap")
def test_a_workflow_that_does_not_do_its_task_has_failed_though_every_step_ended_well(
    assay_inline: AssayInline, wording: Wording
) -> None:
    plan = reference_plan().document()
    plan[0]["command"] = "mkdir -p work results && cp data/orders.csv work/clean.csv"
    lazy = [{"name": "a", "command": "mkdir -p results && touch results/report.txt"}]
    define(assay_inline, careless={"steps": plan}, lazy={"steps": lazy})
    done = assay_inline("run", "workflow", "--agent", "careless", "--agent", "lazy", *QUICK, "--json")

    assert done.code == 1
    document = json.loads(done.out)
    models = document["workflow"]["models"]
    assert [models[name]["success_rate"] for name in ("careless", "lazy")] == [0, 0]
    assert 0 < models["careless"]["right_results"] < 1
    assert models["lazy"]["required_tools_share"] == 0
    wording("\n".join(warning["message"] for warning in document["warnings"]), near="results are right")


@contextmanager
def model_server(model: str, output: str) -> Iterator[str]:
    """An OpenAI-compatible server whose answers say that `model` wrote them, whoever was asked for."""
    usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
    message = {"role": "assistant", "content": output}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = json.dumps(
        {"id": "1", "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}
    )

    class Chat(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Chat) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize(("answering", "is_found_out"), [("gpt-asked", False), ("gpt-other", True)])
def test_a_model_plans_and_proves_that_it_was_the_one_asked_for(
    assay_inline: AssayInline, answering: str, is_found_out: bool
) -> None:
    plan = f"Here it is:\n```json\n{json.dumps(reference_plan().document())}\n```"
    with model_server(answering, plan) as url:
        agent = {
            "name": "gpt",
            "type": "openai",
            "model": "gpt-asked",
            "base_url": url,
            "api_key": "none",
            "stream": False,
        }
        assay_inline.write("agents.yaml", json.dumps({"agents": [agent]}))
        assay_inline.write("assay.toml", '[assay]\nagents = ["agents.yaml"]\n')
        document = assay_inline("run", "workflow", "--agent", "gpt", *QUICK, "--json").json

    found = document["workflow"]["models"]["gpt"]
    assert (found["success_rate"], found["tokens"], found["answered_by"]) == (1.0, 150.0, answering)
    told = [warning["message"] for warning in document["warnings"]]
    assert any("gpt-other" in text for text in told) == is_found_out


def test_without_a_sandbox_the_benchmark_is_refused_unless_the_operator_does_without(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    wording(assay_inline("run", "workflow", *QUICK).refusal)

    done = assay_inline(
        "run", "workflow", *QUICK, "--sandbox", "none", "--set", "interrupt=false", "--json"
    ).json
    assert done["environment"]["sandbox"] == "none"
    assert "sandbox" in [warning["code"] for warning in done["warnings"]]


@pytest.mark.parametrize("wrong", ["rows=1", "resume=guess", "data=nowhere", "steps=3"])
def test_a_wrong_param_is_refused(assay_inline: AssayInline, wrong: str) -> None:
    assert assay_inline("run", "workflow", "--set", wrong).code == 2


def test_the_results_of_the_shipped_task_follow_from_its_data() -> None:
    data = make_data(200, 5)
    again = make_data(200, 5)

    assert data == again
    assert data != make_data(200, 6)
    revenue = [line.split(",") for line in data.results["results/revenue.csv"].split("\n")]
    orders = list(csv.DictReader(data.files["data/orders.csv"].splitlines()))
    for region, cents in revenue:
        assert int(cents) == sum(
            int(row["quantity"]) * int(row["price"])
            for row in orders
            if row["region"] == region and row["quantity"]
        )
    assert any(not row["quantity"] for row in orders)


@pytest.mark.usefixtures("bubblewrap")
def test_every_repetition_counts_though_many_in_a_row_fail(assay_inline: AssayInline) -> None:
    """An early end after failures in a row would make the success rate of a poor model even poorer."""
    assay_inline.write(
        "agents.yaml", '{"agents": [{"name": "poor", "type": "simulated", "quality": 0.05, "seconds": 0}]}'
    )
    assay_inline.write("assay.toml", '[assay]\nagents = ["agents.yaml"]\n')
    whole = ("--set", "interrupt=false", "--repetitions", "40", "--seed", "3")
    document = assay_inline("run", "workflow", "--agent", "poor", *QUICK, *whole, "--json").json

    found = document["workflow"]["models"]["poor"]
    assert found["runs"] == 40
    assert 0 < found["success_rate"] < 0.2


@pytest.mark.usefixtures("bubblewrap")
def test_a_model_that_cannot_be_reached_is_not_asked_again_and_again(assay_inline: AssayInline) -> None:
    agent = '{"name": "gone", "type": "http", "url": "http://127.0.0.1:9/", "output": "$.x"}'
    assay_inline.write("agents.yaml", f'{{"agents": [{agent}]}}')
    assay_inline.write("assay.toml", '[assay]\nagents = ["agents.yaml"]\n')
    done = assay_inline("run", "workflow", "--agent", "gone", *QUICK, "--repetitions", "40", "--json")

    assert json.loads(done.out)["trials"][0]["counts"] == {"failed": 3}
