"""Loads as tests carry them out: the real engine with its worker processes, without the command around it."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.command import COMMAND, environment

from assay.analysis.load.judgement import judge_load
from assay.load.build import LoadOptions, build_prepared_load
from assay.model.load import LoadResult
from assay.pipeline.load import data_of
from assay.spec.settings import find_settings


def load(url: str, **given: Any) -> LoadResult:
    given.setdefault("timeout", "30s")
    if "duration" not in given and "stages" not in given:
        given.setdefault("requests", 4)
    options = LoadOptions(url, **given)
    asked = build_prepared_load(options, data=data_of(options, find_settings(Path.cwd())))
    return judge_load(asked.measure(), asked.load)


@contextlib.contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command while it runs, so that signals can be sent to it; it does not outlive the test."""
    with subprocess.Popen(
        [COMMAND, "load", *arguments], cwd=folder, env=environment({}), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def kinds(url: str, **given: Any) -> dict[str, int]:
    """How often each kind of error came up; all else was answered."""
    result = load(url, **given)
    assert result.requests_sent == result.requests_completed + sum(result.errors.values())
    return dict(result.errors)


def told_by_the_system(pid: int, file: str) -> str:
    """Nothing where the process has just ended."""
    try:
        return Path(f"/proc/{pid}/{file}").read_text()
    except OSError:
        return ""
