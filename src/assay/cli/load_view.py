"""What is going on while a load runs: rate, requests in flight, percentiles, errors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any

from assay.model.load import Load
from assay.units import count, seconds, significant

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from assay.execute.load.engine import Watch
    from assay.execute.load.tally import Pulse, Tally

_BARS = "▁▂▃▄▅▆▇█"
_EVERY = 0.25
PLAIN_EVERY_SECONDS = 5.0
_RECENT = 40


def sparkline(values: list[float]) -> str:
    """
    >>> sparkline([0, 5, 10])
    '▁▅█'
    """
    top = max(values, default=0)
    return "".join(_BARS[int(value / top * (len(_BARS) - 1) + 0.5) if top else 0] for value in values)


@contextlib.contextmanager
def live_view(console: Console, load: Load) -> Iterator[Watch]:
    from rich.live import Live

    with Live(console=console, refresh_per_second=4, transient=True) as live:
        told = 0.0

        def watch(pulse: Pulse, tally: Tally) -> None:
            nonlocal told
            now = monotonic()
            if now - told >= _EVERY:
                told = now
                live.update(picture(pulse, tally, load))

        yield watch


def plain_view(say: Callable[[str], None]) -> Watch:
    """A line every few seconds, and nothing at all for a load that is over in a moment."""
    told = monotonic()

    def watch(pulse: Pulse, tally: Tally) -> None:
        nonlocal told
        now = monotonic()
        if now - told < PLAIN_EVERY_SECONDS:
            return
        told = now
        recent = tally.between(max(0.0, pulse.seconds - PLAIN_EVERY_SECONDS), pulse.seconds)
        times = recent.times["latency"]
        p99 = f", latency P99 {seconds(times.quantile(0.99))}" if times.n else ""
        failed = f", {count(pulse.failed)} failed" if pulse.failed else ""
        say(
            f"{seconds(pulse.seconds)}: {count(pulse.completed)} answered, {count(pulse.in_flight)} in flight{p99}{failed}"
        )

    return watch


def picture(pulse: Pulse, tally: Tally, load: Load) -> Table:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column()
    for name, value in lines(pulse, tally, load):
        grid.add_row(name, value)
    return grid


def lines(pulse: Pulse, tally: Tally, load: Load) -> list[tuple[str, Any]]:
    places = [place for place in sorted(tally.slices) if (place + 1) * tally.width <= pulse.seconds][
        -_RECENT:
    ]
    slices = [tally.slices[place] for place in places]
    rates = [one.completed / tally.width for one in slices]
    recent = rates[-4:]
    now = tally.between(max(0.0, pulse.seconds - 2.0), pulse.seconds)
    told = [
        ("time", f"{seconds(pulse.seconds)} of {_length(load)}"),
        ("answers/s", f"{significant(sum(recent) / max(len(recent), 1))}  [cyan]{sparkline(rates)}[/cyan]"),
        ("in flight", count(pulse.in_flight)),
        ("answered", count(pulse.completed)),
    ]
    for name, title in (("ttft", "first token"), ("latency", "latency")):
        times = now.times[name]
        if times.n:
            told.append((title, " · ".join(f"P{q} {seconds(times.quantile(q / 100))}" for q in (50, 95, 99))))
    if tally.errors:
        kinds = ", ".join(f"{kind} {count(n)}" for kind, n in tally.errors.most_common(4))
        told.append(("failed", f"[red]{count(pulse.failed)}[/red]  {kinds}"))
    return told


def _length(load: Load) -> str:
    return f"{count(load.count)} requests" if load.count is not None else seconds(load.seconds)
