"""The OpenAPI schema is complete, and a fuzzer finds no answer that it does not describe."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.command import Assay
from tests.server.conftest import write_project
from tests.server.service import Service, serving

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
CASES = int(os.environ.get("ASSAY_FUZZ_CASES", "8"))
"""For each operation, with a key; the environment may ask for more. Whoever has no key is refused before anything is read."""


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory, played: Path) -> Iterator[tuple[Service, str]]:
    """A server with results and keys, and a key that may do everything."""
    folder = tmp_path_factory.mktemp("fuzzed")
    shutil.copytree(played, folder, dirs_exist_ok=True)
    write_project(folder, "max_runs = 1\nsync_seconds = 1\nrate = 100000")
    token = Assay(folder)("key", "create", "fuzzer", "--scope", "admin", "--json").json["key"]
    with serving(folder) as service:
        yield service, token


def test_every_operation_is_described(fuzzed: tuple[Service, str]) -> None:
    schema = _read_schema(*fuzzed)
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            told = (method, path)
            assert operation["summary"], told
            assert {"401", "403", "413", "415", "422", "429", "503"} <= operation["responses"].keys(), told
            assert "200" in operation["responses"], told
            assert (operation.get("security") == [{"key": []}]) is (path != "/health"), told
            if "{" in path and path != "/benchmarks/agents/{agent_id}/results":
                assert "404" in operation["responses"], told


def test_the_endpoints_of_the_specification_have_its_parameters(fuzzed: tuple[Service, str]) -> None:
    paths = _read_schema(*fuzzed)["paths"]
    defaults = {
        path: {one["name"]: one["schema"].get("default") for one in operations["get"].get("parameters", ())}
        for path, operations in paths.items()
        if "get" in operations
    }
    assert defaults["/benchmarks/leaderboard"] == {"category": "overall", "metric": "all", "limit": 20}
    results = defaults["/benchmarks/agents/{agent_id}/results"]
    assert {name: results[name] for name in ("agent_id", "suite_id", "timeframe")} == {
        "agent_id": None, "suite_id": None, "timeframe": "latest",
    }  # fmt: skip
    assert defaults["/benchmarks/agents/{agent_id}/regressions"] == {
        "agent_id": None, "baseline_version": None, "threshold": 0.1,
    }  # fmt: skip
    assert {"/benchmarks/run", "/benchmarks/compare"} <= paths.keys()


def _read_schema(service: Service, token: str) -> Any:
    answer = service.request("GET", "/openapi.json", headers={"Authorization": f"Bearer {token}"})
    return answer.document


@pytest.mark.slow
@pytest.mark.parametrize("has_key", [True, False], ids=["with a key", "without a key"])
def test_a_fuzzer_finds_nothing_that_the_schema_does_not_say(
    fuzzed: tuple[Service, str], has_key: bool
) -> None:
    service, token = fuzzed
    headers = {"Authorization": f"Bearer {token}"} if has_key else {}
    schema = schemathesis.openapi.from_dict(_read_schema(service, token))
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) >= 20
    for operation in operations:

        @settings(
            max_examples=CASES if has_key else max(1, CASES // 5),
            database=None,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            answer = case.call(base_url=service.url, headers=headers)
            case.validate_response(answer, checks=CHECKS)
            if not has_key and case.path != "/health":
                assert answer.status_code in (401, 413, 415, 429)

        ask()
    assert service.get("/health").status == 200
