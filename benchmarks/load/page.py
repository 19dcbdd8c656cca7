"""What the load engine promises and keeps, as a part of docs/benchmarks.md: its words; `page` puts them together."""

from __future__ import annotations

import record

RESULTS = record.RESULTS / "load"
ORDER = (
    "rate-wrk",
    "rate-aiohttp",
    "rate-locust",
    "rate-vllm",
    "rate-inference-perf",
    "rate-aiperf",
    "rate-guidellm",
    "cpu",
    "ttft-p50",
    "ttft-p99",
    "itl-p99",
    "schedule",
    "lost",
    "kept-rate",
    "capacity",
    "first-request",
    "memory-worker",
    "memory-command",
    "memory-growth",
)
OPENING = """\
# Load engine

`assay load` and other load generators take turns against a server whose times are known: a small program in C
(`benchmarks/load/server.c`) on a core of its own. It records when each request arrived (where times are judged, by the timestamp of the
kernel) and when it wrote each token. Rates and errors below are compared with that record, not with what a tool reports about itself. Tool
and server have one core each, if there are two. A figure is the median over the rounds; in brackets are the extremes.
"""
READING = """\
## How the load engine is measured

- **Rates**: 64 requests in flight, answered with 16 tokens without any delay. The rate is that of requests at the server between the first and the
  last tenth of them, so the start and the end of a tool do not count. wrk is the upper bound: it counts bytes and parses nothing. The aiohttp client
  and the locust user parse every event. For vLLM, the request function of its own benchmark sends the requests, in a session as that
  benchmark creates it; the rest of the benchmark is left out, which favours vLLM. guidellm may start one process instead of ten, which is an
  advantage on one core. A peer that cannot be installed is left out, and the remarks say so.
- **CPU time**: the time of all processes of the command, as the difference of a long and a short run divided by the difference of their requests.
- **Accuracy**: the server sends the first token after 50 ms, then one every 5 ms, 20 in all. There are three loads: 1 request at a time (30 s), 32 at a time and
  200 a second (10 s each). The error is the reported percentile minus that of the server, at the load with the largest error; for peers it comes
  from their own result files. Assay and the aiohttp client count from when a request was due, the other peers from when they sent it. Tools that take half
  a minute to start run once per load, the others three times. aiperf and guidellm report the mean gap between tokens of each answer, and locust, which has
  no schedule and rounds to milliseconds, reports no gaps, so they are missing from the percentile of gaps. Lateness is how late requests reach the
  server, relative to an even schedule through the earliest ones.
- **Quiet machine**: the host of a virtual machine may take a processor away for milliseconds at a time. A measurement of rates or accuracy therefore
  starts when a program that only reads the clock (`benchmarks/load/pauses.c`) is late by at most 0.1 ms at P99 on both cores, or after half a minute. If
  the host took more than 0.3 % of a core during a measurement of accuracy (the kernel's stolen time), it is repeated, up to four times in all, and the
  quietest one counts. The rule is the same for all tools that run several times and does not depend on what a tool reports. The remarks say how often
  it applied and how quiet the machine was.
- **A minute at 1,000 a second**: the same server; 20,000 tokens a second come back, each with its time.
- **Capacity**: a server that serves n requests at a time, each for t seconds, can sustain n ÷ t.
- **Memory**: peak resident memory of each process, as the kernel reports it.
"""
REPRODUCE = """\
## Reproduce the load engine's figures

    make bench-load                                             # everything, some minutes; exit code 1 if a target is missed
    PYTHONPATH=benchmarks python -m load.run --only exactness   # one part: rates, exactness, sustained, capacity, start, memory
    PYTHONPATH=benchmarks python -m load.run --quick            # a trial with fewer and shorter runs; stores nothing

It needs a C compiler. If wrk is missing and apt-get may be used (by root), wrk is installed; otherwise install it first, with `sudo apt-get install wrk`
or `brew install wrk`. Without it, the remarks say that it was left out. Each of the other peers gets its own virtual environment, `.venv-NAME`, from
`benchmarks/load/peers`.
"""
