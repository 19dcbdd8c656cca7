"""For pytest-benchmark."""

from __future__ import annotations

from typing import Any

from functions import empty, ten_microseconds


def test_empty(benchmark: Any) -> None:
    benchmark(empty)


def test_ten_microseconds(benchmark: Any) -> None:
    benchmark(ten_microseconds)
