"""What is going on while a load runs: rate, requests in flight, percentiles, errors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING

from assay.execute.load.bounds import SHORTEST
from assay.model.load import Load
from assay.units import count, percent, seconds, significant

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    from assay.execute.load.engine import Watch
    from assay.execute.load.tally import LoadProgress, Slice, Tally

_BARS = "▁▂▃▄▅▆▇█"
_EVERY = 0.5
"""Seconds between two pictures: each takes a few milliseconds of a processor that a worker may need."""
PLAIN_EVERY_SECONDS = 5.0
_WIDEST, _NARROWEST = 60, 10
_BESIDE_THE_CHART = 34
"""Columns that names and figures take."""
_RECENT = 8
"""Slices that the figures beside the charts are of."""


def sparkline(values: Sequence[float | None], top: float | None = None) -> str:
    """Bars from 0 to the highest value, or to `top`; a gap where there is none.

    >>> sparkline([0, 5, None, 10]), sparkline([5, 10], top=20)
    ('▁▅ █', '▃▅')
    """
    if top is None:
        top = max((value for value in values if value is not None), default=0)
    return "".join(
        " " if value is None else _BARS[int(value / top * (len(_BARS) - 1) + 0.5) if top else 0]
        for value in values
    )


@contextlib.contextmanager
def live_view(open_console: Callable[[], Console], load: Load) -> Iterator[Watch]:
    """Opened with the first picture, as the first request does not wait for it."""
    with contextlib.ExitStack() as until_done:
        drawn = 0.0
        history = InFlight()

        @cache
        def screen() -> Live:
            from rich.live import Live

            # Drawn by whoever watches, whose priority is low while a load runs; a thread of the screen would have the usual one.
            live = Live(console=open_console(), auto_refresh=False, transient=True)
            return until_done.enter_context(live)

        def watch(pulse: LoadProgress, tally: Tally) -> None:
            nonlocal drawn
            history.add(pulse)
            if monotonic() - drawn >= _EVERY:
                live = screen()
                live.update(picture(pulse, tally, load, history, live.console.width), refresh=True)
                drawn = monotonic()

        yield watch


class InFlight:
    """Requests in flight over time as they were told; slices know of a request only when it has ended."""

    def __init__(self) -> None:
        self._told: dict[int, int] = {}
        self._last = 0

    def add(self, pulse: LoadProgress) -> None:
        place = int(pulse.seconds / SHORTEST)
        if place < self._last:
            self._told.clear()
        self._last = place
        self._told[place] = pulse.in_flight

    def between(self, begin: float, end: float) -> float | None:
        """The mean of what was told in the time; None where nothing was."""
        places = range(int(begin / SHORTEST), max(int(end / SHORTEST), int(begin / SHORTEST) + 1))
        told = [self._told[place] for place in places if place in self._told]
        return sum(told) / len(told) if told else None

    def forget_before(self, seconds: float) -> None:
        for place in [place for place in self._told if place < int(seconds / SHORTEST)]:
            del self._told[place]


def plain_view(say: Callable[[str], None]) -> Watch:
    """A line every few seconds, and nothing at all for a load that is over in a moment."""
    told = monotonic()

    def watch(pulse: LoadProgress, tally: Tally) -> None:
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


@dataclass(frozen=True, slots=True)
class ViewLine:
    """A row of the live view: a name, the figure now, and how it was."""

    name: str
    now: str
    values: Sequence[float | None] = ()
    colour: str = "cyan"
    note: str = ""
    top: float | None = None
    """Where its chart ends, of several on one scale."""


def picture(pulse: LoadProgress, tally: Tally, load: Load, history: InFlight, width: int = 80) -> Table:
    from rich.table import Table
    from rich.text import Text

    room = min(_WIDEST, max(_NARROWEST, width - _BESIDE_THE_CHART))
    lines = view_lines(pulse, tally, load, history, room)
    grid = Table.grid(padding=(0, 2))
    # Where there is too little room, charts lose their ends, not the rows their names.
    grid.add_column(style="dim", no_wrap=True, min_width=max(len(line.name) for line in lines))
    grid.add_column(justify="right", no_wrap=True, min_width=max(len(line.now) for line in lines))
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for line in lines:
        chart = Text(sparkline(line.values, line.top), line.colour)
        grid.add_row(
            line.name, Text(line.now), chart.append(line.note, "dim" if line.values else line.colour)
        )
    return grid


def view_lines(pulse: LoadProgress, tally: Tally, load: Load, history: InFlight, room: int) -> list[ViewLine]:
    """Progress, rate, in flight, percentiles and errors; charts of the last slices, one column each."""
    from assay.execute.load.tally import Slice

    width = tally.width
    last = int(pulse.seconds / width)
    places = range(max(0, last - room), last)
    history.forget_before(places.start * width)
    in_flight = [history.between(place * width, (place + 1) * width) for place in places]
    slices = [tally.slices.get(place, Slice()) for place in places]
    rates = [one.completed / width for one in slices]
    recent = rates[-_RECENT:]
    lines = [
        _progress(pulse, load, room),
        ViewLine("answers/s", significant(sum(recent) / max(len(recent), 1)), rates),
        ViewLine("in flight", count(pulse.in_flight), in_flight),
    ]
    for name, title in (("ttft", "first token"), ("latency", "latency")):
        lines += _percentiles(slices, name, title)
    if tally.errors:
        kinds = ", ".join(f"{kind} {count(n)}" for kind, n in tally.errors.most_common(4))
        share = percent(pulse.failed / max(1, pulse.failed + pulse.completed))
        failed = [one.failed / width for one in slices]
        lines.append(ViewLine("failed/s", significant(sum(failed[-_RECENT:]) / _RECENT), failed, "red"))
        lines.append(ViewLine("failed", count(pulse.failed), colour="red", note=f"{share}: {kinds}"))
    return lines


def _progress(pulse: LoadProgress, load: Load, room: int) -> ViewLine:
    ended = pulse.completed + pulse.failed
    share = ended / load.count if load.count is not None else pulse.seconds / load.seconds
    filled = min(room, int(share * room))
    bar = "━" * filled + "╌" * (room - filled)
    return ViewLine("time", seconds(pulse.seconds), colour="green", note=f"{bar} of {_length(load)}")


def _percentiles(slices: Sequence[Slice], name: str, title: str) -> list[ViewLine]:
    """By when requests were due, so the last slices fill up as answers come in; figures are of those that have some."""
    times = [one.times[name] for one in slices]
    told = [one for one in times if one.n][-_RECENT:]
    if not told:
        return []
    from assay.stats.histogram import added

    now, top = added(told), max(one.quantile(0.99) for one in times if one.n)
    return [
        ViewLine(
            f"{title} P{share}",
            seconds(now.quantile(share / 100)),
            [one.quantile(share / 100) if one.n else None for one in times],
            colour,
            top=top,
        )
        for share, colour in ((50, "blue"), (95, "yellow"), (99, "magenta"))
    ]


def _length(load: Load) -> str:
    return f"{count(load.count)} requests" if load.count is not None else seconds(load.seconds)
