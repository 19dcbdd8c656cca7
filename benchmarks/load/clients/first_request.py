"""Says when the engine was given a load, on the monotonic clock, and carries the load out: one request."""

from __future__ import annotations

import sys
import time

from assay.load.build import LoadOptions, build_prepared_load

if __name__ == "__main__":
    load = build_prepared_load(LoadOptions(f"{sys.argv[1]}/v1", model="m", concurrency=1, requests=1))
    print(time.monotonic(), flush=True)
    load.measure()
