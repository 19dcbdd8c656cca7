from __future__ import annotations

from functions import empty, ten_microseconds

from assay import benchmark

benchmark(empty)
benchmark(ten_microseconds)
