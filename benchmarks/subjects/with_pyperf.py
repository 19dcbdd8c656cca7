from __future__ import annotations

import pyperf
from functions import empty, ten_microseconds

runner = pyperf.Runner()
runner.bench_func("empty", empty)
runner.bench_func("ten_microseconds", ten_microseconds)
