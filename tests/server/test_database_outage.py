from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.server.service import serving
from tests.services import postgres_server


@pytest.mark.postgres
@pytest.mark.slow
def test_while_the_database_is_away_the_server_says_so_and_then_recovers(project: Path) -> None:
    with postgres_server() as postgres, serving(project, "--db", postgres.empty()) as service:
        assert service.get("/health").status == 200
        postgres.stop()
        for path in ("/health", "/runs", "/benchmarks/leaderboard", "/runs/queue"):
            answer = service.get(path)
            assert (answer.status, answer.json["error"]) == (503, "unavailable")
            assert int(answer.headers["retry-after"]) > 0
        asked = service.post("/benchmarks/run", agent_id="good", suite_id="desk")
        assert asked.status == 503
        time.sleep(1)
        postgres.restart()
        assert service.get("/health").status == 200
        done = service.post("/benchmarks/run", agent_id="good", suite_id="desk", configuration={"limit": 2})
        assert done.document["status"] == "completed"
