"""What a server does by itself goes on, whatever happens to one step of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.waiting import wait_for

from assay.server.analyst import Analyst
from assay.server.background import BackgroundWork
from assay.server.context import Contexts, ServerContext
from assay.server.queue import RunQueue
from assay.server.webhook import Webhook
from assay.spec.settings import Settings
from assay.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'assay.db'}") as opened:
        opened.create_workspace("team")
        yield opened


def test_an_unforeseen_error_is_logged_once_and_other_workspaces_get_their_turn(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []

    def break_in_one(of: Store, *_: object) -> None:
        asked.append(of.workspace)
        if of.workspace == "default":
            raise KeyError("unforeseen")

    monkeypatch.setattr("assay.server.background.deliver_alerts", break_in_one)
    monkeypatch.setattr("assay.server.background._ALERT_SECONDS", 0.05)
    queue = RunQueue(store, "", 1)
    contexts = Contexts(ServerContext(Settings(Path(), ""), store, queue, Analyst("", "")))
    work = BackgroundWork(contexts, Webhook(False, "127.0.0.1", 1, "/"))
    work.start()
    try:
        wait_for(lambda: asked.count("team"), lambda count: count >= 3)
    finally:
        work.stop()
    assert asked.count("default") >= 3
    logged = [one for one in caplog.records if one.exc_info and one.name == "assay.server.background"]
    assert [(one.levelno, "'default'" in one.getMessage()) for one in logged] == [(logging.ERROR, True)]


def test_the_queue_outlives_an_unforeseen_error(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    steps: list[float] = []

    def break_down(self: Store) -> None:
        steps.append(time.monotonic())
        raise KeyError("unforeseen")

    monkeypatch.setattr(Store, "whole_queue", break_down)
    queue = RunQueue(store, "", 1)
    queue.start()
    try:
        wait_for(lambda: len(steps), lambda count: count >= 2)
    finally:
        queue.stop()
    assert [one.levelno for one in caplog.records if one.exc_info][:1] == [logging.ERROR]
