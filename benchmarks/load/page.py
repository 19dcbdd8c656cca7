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

`assay load` and other load generators, in the same run against a server whose times are known. The server is a small program in C
(`benchmarks/load/server.c`) with a core of its own and keeps its own record: when each request arrived, where times are judged by the
kernel's stamp, and when each token was written. Rates and errors below are held against that record, not against what a tool says of itself. Tool and server each
have one core, where there are two. A figure is the median over the rounds; in brackets their extremes.
"""
READING = """\
## How the load engine is measured

- **Rates**: whole answers of 16 tokens without any delay, 64 at a time; requests per second at the server between its first and its last
  tenth, so that how a tool starts and stops does not count. All tools take turns. wrk is the floor: it counts bytes and looks at nothing.
  The client on aiohttp and the user of locust parse every event. Of vLLM it is the request function of its own benchmark that asks, in a
  session as that benchmark makes it; what else the benchmark does is left out, to its advantage. guidellm may start one process instead of ten,
  which on one core is to its advantage, too. A peer that cannot be installed is left out, and the remarks say so.
- **CPU time**: of all processes of the command; a long run less a short one, divided by the requests that it makes more.
- **Exactness**: first token after 50 ms, then one every 5 ms, 20 in all; one at a time, 32 at a time, and 200 a second. What is judged is the
  reported percentile less the server's, at the load where it is worst; the peers are judged alike, by what each of them writes to its own
  results. Of one at a time this takes half a minute, else ten seconds. A request's time counts from when it was due; the peers' but that of the client on aiohttp from when they sent it. Those that take half
  a minute to begin are asked once at each load, the others three times. aiperf and guidellm report gaps between tokens as one mean an answer, and
  locust, which has no timetable and rounds to milliseconds, none, so they are not beside the percentile of gaps. Lateness is how far requests reach the server behind an even timetable through the most punctual of them.
- **Quiet**: the host of a virtual machine may take a processor away for milliseconds at a time, which no tool can help. So a measurement of rates or exactness
  begins when a program that does nothing but read the clock (`benchmarks/load/pauses.c`) is late by at most 0.1 ms at P99 on both cores, or after half a minute;
  and one of exactness during which the host took more than 0.3 % of a core's time away, by the kernel's account of stolen time, is made again, up to four in all, of which the one where
  least was taken counts. The same rule holds for all tools that are asked more than once, and what a tool reported plays no part in it. The remarks say how often it was applied, and how quiet it was.
- **A minute at 1,000 a second**: against the same server; 20,000 tokens a second come back, each with its time.
- **Capacity**: a server that serves a known number of requests at a time, each for a known time, can sustain the quotient of the two.
- **Memory**: the highest resident size of each process, as the kernel keeps it.
"""
REPRODUCE = """\
## Reproduce the load engine's figures

    make bench-load                                             # everything, some minutes; exit code 1 when a promise is missed
    PYTHONPATH=benchmarks python -m load.run --only exactness   # one part: rates, exactness, sustained, capacity, start, memory
    PYTHONPATH=benchmarks python -m load.run --quick            # a trial with fewer and shorter runs; stores nothing

It takes a C compiler. wrk is installed where it is missing and apt-get may be used (by root); elsewhere `sudo apt-get install wrk` or `brew install
wrk` beforehand has it compared, and without it the remarks say so. Each of the other peers gets a virtual environment of its own, `.venv-NAME`, from
`benchmarks/load/peers`.
"""
