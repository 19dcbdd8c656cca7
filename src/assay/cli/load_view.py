"""The view of a running load: rate, requests in flight, percentiles, errors.

The load engine calls the `Watch` that `live_view` or `plain_view` returns with its progress and its tally, many times a
second. The watch decides how often it draws, because drawing takes time from the workers: on a terminal a table with
charts twice a second, elsewhere a line every five seconds. Each column of a chart is one slice of the tally.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING

from assay.load.histogram_bounds import SHORTEST
from assay.model.load import Load
from assay.units import count, format_count, percent, seconds, significant

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    from assay.load.engine import Watch
    from assay.load.tally import LoadProgress, Slice, Tally

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
    """A table with charts on a terminal. It is opened with the first picture, so that the first request need not wait for it."""
    with contextlib.ExitStack() as until_done:
        drawn_at = 0.0
        history = InFlight()

        @cache
        def screen() -> Live:
            from rich.live import Live

            # Drawn by the process that watches, whose priority is low while a load runs; a thread of the screen would have the usual one.
            live = Live(console=open_console(), auto_refresh=False, transient=True)
            return until_done.enter_context(live)

        def watch(progress: LoadProgress, tally: Tally) -> None:
            nonlocal drawn_at
            history.add(progress)
            if monotonic() - drawn_at >= _EVERY:
                live = screen()
                live.update(picture(progress, tally, load, history, live.console.width), refresh=True)
                drawn_at = monotonic()

        yield watch


class InFlight:
    """The number of requests in flight over time, from the progress reports of the engine.

    The slices of the tally cannot give it, because they know of a request only when it has ended. Reports are kept by
    their time in units of the shortest slice; a time before the last one means that a new load began.
    """

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._last = 0

    def add(self, progress: LoadProgress) -> None:
        """Note a progress report; several in one unit of time count as the last of them."""
        place = int(progress.seconds / SHORTEST)
        if place < self._last:
            self._counts.clear()
        self._last = place
        self._counts[place] = progress.in_flight

    def between(self, begin: float, end: float) -> float | None:
        """The mean of the reports from that time, or None if there was none."""
        places = range(int(begin / SHORTEST), max(int(end / SHORTEST), int(begin / SHORTEST) + 1))
        counts = [self._counts[place] for place in places if place in self._counts]
        return sum(counts) / len(counts) if counts else None

    def forget_before(self, seconds: float) -> None:
        for place in [place for place in self._counts if place < int(seconds / SHORTEST)]:
            del self._counts[place]


def plain_view(say: Callable[[str], None]) -> Watch:
    """A line every few seconds, and nothing at all for a load that is over in a moment."""
    last_line = monotonic()

    def watch(progress: LoadProgress, tally: Tally) -> None:
        nonlocal last_line
        now = monotonic()
        if now - last_line < PLAIN_EVERY_SECONDS:
            return
        last_line = now
        recent = tally.between(max(0.0, progress.seconds - PLAIN_EVERY_SECONDS), progress.seconds)
        times = recent.times["latency"]
        p99 = f", latency P99 {seconds(times.quantile(0.99))}" if times.n else ""
        failed = f", {count(progress.failed)} failed" if progress.failed else ""
        say(
            f"{seconds(progress.seconds)}: {count(progress.completed)} answered, {count(progress.in_flight)} in flight{p99}{failed}"
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


def picture(progress: LoadProgress, tally: Tally, load: Load, history: InFlight, width: int = 80) -> Table:
    """The live view as a table: a row for each line, with its name, its figure and its chart."""
    from rich.table import Table
    from rich.text import Text

    room = min(_WIDEST, max(_NARROWEST, width - _BESIDE_THE_CHART))
    lines = view_lines(progress, tally, load, history, room)
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


def view_lines(
    progress: LoadProgress, tally: Tally, load: Load, history: InFlight, room: int
) -> list[ViewLine]:
    """Progress, rate, in flight, percentiles and errors; charts of the last slices, one column each."""
    from assay.load.tally import Slice

    # The slice of this moment is left out: it is not over yet, and its rate would dip at every refresh.
    width = tally.width
    last = int(progress.seconds / width)
    places = range(max(0, last - room), last)
    history.forget_before(places.start * width)
    in_flight = [history.between(place * width, (place + 1) * width) for place in places]
    slices = [tally.slices.get(place, Slice()) for place in places]
    rates = [time_slice.completed / width for time_slice in slices]
    recent = rates[-_RECENT:]
    ended = progress.completed + progress.failed
    share_done = ended / load.count if load.count is not None else progress.seconds / load.seconds
    filled = min(room, int(share_done * room))
    bar = "━" * filled + "╌" * (room - filled)
    length = format_count(load.count, "request") if load.count is not None else seconds(load.seconds)
    lines = [
        ViewLine("time", seconds(progress.seconds), colour="green", note=f"{bar} of {length}"),
        ViewLine("answers/s", significant(sum(recent) / max(len(recent), 1)), rates),
        ViewLine("in flight", count(progress.in_flight), in_flight),
    ]
    for name, title in (("ttft", "first token"), ("latency", "latency")):
        lines += _percentiles(slices, name, title)
    if tally.errors:
        kinds = ", ".join(f"{kind} {count(n)}" for kind, n in tally.errors.most_common(4))
        share = percent(progress.failed / max(1, progress.failed + progress.completed))
        failed = [time_slice.failed / width for time_slice in slices]
        lines.append(ViewLine("failed/s", significant(sum(failed[-_RECENT:]) / _RECENT), failed, "red"))
        lines.append(ViewLine("failed", count(progress.failed), colour="red", note=f"{share}: {kinds}"))
    return lines


def _percentiles(slices: Sequence[Slice], name: str, title: str) -> list[ViewLine]:
    """Three lines of percentiles. A request belongs to the slice in which it was due, so the last slices fill up as answers come
    in; the figures are those of the latest slices that have answers."""
    times = [part.times[name] for part in slices]
    recent = [histogram for histogram in times if histogram.n][-_RECENT:]
    if not recent:
        return []
    from assay.stats.histogram import merge_histograms

    now = merge_histograms(recent)
    top = max(histogram.quantile(0.99) for histogram in times if histogram.n)
    return [
        ViewLine(
            f"{title} P{share}",
            seconds(now.quantile(share / 100)),
            [histogram.quantile(share / 100) if histogram.n else None for histogram in times],
            colour,
            top=top,
        )
        for share, colour in ((50, "blue"), (95, "yellow"), (99, "magenta"))
    ]
