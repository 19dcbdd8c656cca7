"""What people write about loads: objectives, stages, traces and prompts."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from assay.errors import Mistake, SpecError
from assay.files import UnreadableFile, read_bytes
from assay.model.load import Objective, Trace

HIGHEST_RATE = 1_000_000.0
MOST_TOKENS = 1_000_000
_MOST_TOLD = 20
"""Mistakes of one file; a file that is wrong throughout would bury them."""
_TIMES = ("ttft", "itl", "tpot", "latency", "schedule_delay")
_RATES = ("error_rate", "throughput", "goodput", "tokens")
_STATISTICS = ("mean", "max", "p50", "p90", "p95", "p99", "p999")
_NUMBER = r"(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d{1,2})?"
_OBJECTIVE = re.compile(
    rf"\s*([a-z_]+?)(?:_(mean|max|p\d+))?\s*(<=?|>=?)\s*({_NUMBER})\s*(us|µs|ms|s|%|/s)?\s*", re.A
)
_DURATION = re.compile(rf"({_NUMBER})\s*(us|ms|s|m|min|h)?", re.A)
_UNITS = {
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "%": 0.01,
    "/s": 1.0,
}
_STAGE = re.compile(rf"([^@]+)@\s*({_NUMBER})\s*(?:/s)?\s*(?:\.\.\s*({_NUMBER})\s*(?:/s)?)?", re.A)
_MOMENT = ("timestamp", "time", "arrived_at", "arrival_time", "offset", "seconds")
_INPUT = (
    "contexttokens",
    "context_tokens",
    "input_tokens",
    "prompt_tokens",
    "input_length",
    "num_prefill_tokens",
)
PROMPT_KEYS = ("prompt", "input", "question", "text")
_NO_PROMPT = "'prompt', 'input', 'question' or 'text'"
_OUTPUT = (
    "generatedtokens",
    "generated_tokens",
    "output_tokens",
    "completion_tokens",
    "output_length",
    "num_decode_tokens",
)


def seconds_of(text: str, option: str) -> float:
    """
    >>> seconds_of("10", "--duration"), seconds_of("200ms", "--duration"), seconds_of("2m", "--duration")
    (10.0, 0.2, 120.0)
    """
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        raise _wrong(option, f"'{text}' is not a time. Write 10, 10s, 200ms or 2m.")
    return float(found[1]) * _UNITS[found[2] or "s"]


def rate_of(text: str | float, option: str) -> float:
    """
    >>> rate_of("200", "--rate"), rate_of("50/s", "--rate")
    (200.0, 50.0)
    """
    try:
        rate = float(str(text).removesuffix("/s"))
    except ValueError:
        raise _wrong(option, f"'{text}' is not a rate. Write requests per second, as in 50 or 0.5.") from None
    if not math.isfinite(rate) or rate <= 0:
        raise _wrong(option, f"A rate must be more than 0, not {text}.")
    if rate > HIGHEST_RATE:
        raise _wrong(
            option, f"{text} requests/s is more than any machine can send; the most is {HIGHEST_RATE:.0f}."
        )
    return rate


def objectives_of(text: str, option: str = "--slo") -> tuple[Objective, ...]:
    """
    >>> [(o.metric, o.statistic, o.limit) for o in objectives_of("ttft_p95<200ms, error_rate<1%")]
    [('ttft', 'p95', 0.2), ('error_rate', None, 0.01)]
    """
    parts = [part for part in text.split(",") if part.strip()]
    if not parts:
        raise _wrong(option, "No objective is given. Write for instance: ttft_p95<200ms,error_rate<1%")
    return tuple(_objective(part, option) for part in parts)


def _objective(text: str, option: str) -> Objective:
    found = _OBJECTIVE.fullmatch(text)
    if found is None:
        raise _wrong(
            option,
            f"'{text.strip()}' is not an objective. Write for instance ttft_p95<200ms or error_rate<1%.",
        )
    metric, statistic, sign, number, unit = found.groups()
    if metric not in (*_TIMES, *_RATES):
        raise _wrong(option, f"'{metric}' cannot be an objective; there are {', '.join((*_TIMES, *_RATES))}.")
    if metric in _TIMES and statistic not in _STATISTICS:
        raise _wrong(
            option, f"Of '{metric}' say which figure: {', '.join(f'{metric}_{s}' for s in _STATISTICS)}."
        )
    if metric in _TIMES and unit not in ("us", "µs", "ms", "s"):
        raise _wrong(option, f"'{text.strip()}' lacks a unit: us, ms or s.")
    if metric in _RATES and (statistic or unit in ("us", "µs", "ms", "s")):
        raise _wrong(option, f"'{metric}' is a rate: write {_example(metric)}.")
    if unit == ("/s" if metric == "error_rate" else "%"):
        raise _wrong(option, f"'{text.strip()}': write {_example(metric)}.")
    limit = float(number) * _UNITS.get(unit or "", 1.0)
    return Objective(text.strip(), metric, statistic, sign.startswith("<"), limit, sign.endswith("="))


def _example(metric: str) -> str:
    return "error_rate<1%" if metric == "error_rate" else f"{metric}>50"


def stages_of(text: str, option: str = "--stages") -> tuple[tuple[float, float, float], ...]:
    """Seconds and rates: `10s@50` stays at 50/s, `10s@50..200` goes from one to the other.

    >>> stages_of("10s@50,5s@50..200")
    ((10.0, 50.0, 50.0), (5.0, 50.0, 200.0))
    """
    stages = tuple(_stage(part, option) for part in text.split(",") if part.strip())
    if not any(first + last for _, first, last in stages):
        raise _wrong(option, "No stage sends anything. Write for instance: 10s@50,20s@200,10s@50")
    return stages


def _stage(text: str, option: str) -> tuple[float, float, float]:
    found = _STAGE.fullmatch(text.strip())
    if found is None:
        raise _wrong(option, f"'{text.strip()}' is not a stage. Write 10s@50, or for a ramp 10s@50..200.")
    length = seconds_of(found[1], option)
    first, last = float(found[2]), float(found[3] or found[2])
    if length <= 0:
        raise _wrong(option, f"'{text.strip()}' lasts no time.")
    if max(first, last) > HIGHEST_RATE:
        raise _wrong(
            option,
            f"{text.strip()}: more requests/s than any machine can send; the most is {HIGHEST_RATE:.0f}.",
        )
    return length, first, last


def read_trace(path: Path) -> Trace:
    """Rows of a CSV file: when (seconds, or a date and time), and how many tokens go in and come out.

    Every mistake is told with its line. The file is read row by row, as it may be larger than what fits into memory as text.
    """
    wrong = _Wrong(path)
    trace = Trace(array("d"), array("i"), array("i"))
    for due, given, wanted in _trace_rows(path, wrong):
        trace.due.append(due)
        trace.input_tokens.append(given)
        trace.output_tokens.append(wanted)
    wrong.refuse()
    if not trace:
        raise SpecError([Mistake(str(path), None, "", "the trace has no requests")])
    begin = trace.due[0]
    for place, due in enumerate(trace.due):
        trace.due[place] = due - begin
    return trace


@dataclass(slots=True)
class _Wrong:
    """Mistakes of one file, of which the first are told and the others counted."""

    path: Path
    mistakes: list[Mistake] = field(default_factory=list)
    more: int = 0

    def add(self, line: int | None, text: str) -> None:
        if len(self.mistakes) < _MOST_TOLD:
            self.mistakes.append(Mistake(str(self.path), line, "", text))
        else:
            self.more += 1

    def refuse(self) -> None:
        if self.more:
            self.mistakes.append(Mistake(str(self.path), None, "", f"and {self.more} more lines are wrong"))
        if self.mistakes:
            raise SpecError(self.mistakes)


@contextlib.contextmanager
def _readable(path: Path, newline: str | None = None) -> Iterator[TextIO]:
    try:
        with _opened(path, newline) as file:
            yield file
    except UnreadableFile as error:
        raise SpecError([Mistake(str(path), None, "", error.problem)]) from None
    except OSError as error:
        raise SpecError([Mistake(str(path), None, "", f"cannot be read: {error.strerror}.")]) from None
    except UnicodeDecodeError:
        raise SpecError([Mistake(str(path), None, "", "cannot be read: it is not text in UTF-8")]) from None


def _opened(path: Path, newline: str | None) -> TextIO:
    """A regular file is read row by row; what may never end is read as a whole first, up to a limit."""
    if path.is_file():
        return path.open(encoding="utf-8-sig", newline=newline)
    return io.TextIOWrapper(io.BytesIO(read_bytes(path)), encoding="utf-8-sig", newline=newline)


def _trace_rows(path: Path, wrong: _Wrong) -> Iterator[tuple[float, int, int]]:
    with _readable(path, newline="") as file:
        reader = csv.reader(file)
        try:
            names = [name.strip().lower() for name in next(reader, ())]
            when, given, wanted = (_place(names, known) for known in (_MOMENT, _INPUT, _OUTPUT))
            if when is None:
                told = f"has no column for the time; it may be called {', '.join(_MOMENT)}"
                raise SpecError([Mistake(str(path), 1, "", told)])
            before = -math.inf
            for row in reader:
                try:
                    traced = (
                        _moment(_cell(row, when)),
                        _tokens(_cell(row, given)),
                        _tokens(_cell(row, wanted)),
                    )
                    if traced[0] < before:
                        raise ValueError(f"'{row[when]}' is earlier than the row before")
                except ValueError as error:
                    if row:
                        wrong.add(reader.line_num, str(error))
                    continue
                before = traced[0]
                yield traced
        except csv.Error as error:
            wrong.add(reader.line_num, f"cannot be read as CSV: {error}")


def _place(names: Sequence[str], known: Sequence[str]) -> int | None:
    return next((names.index(name) for name in known if name in names), None)


def _cell(row: Sequence[str], place: int | None) -> str:
    """Rows may be shorter than the one with the names."""
    return row[place].strip() if place is not None and place < len(row) else ""


def _moment(written: str) -> float:
    try:
        moment = float(written)
    except ValueError:
        try:
            moment = _utc(datetime.fromisoformat(_short_fraction(written))).timestamp()
        except (ValueError, OverflowError):
            raise ValueError(f"'{written}' is neither seconds nor a date and time") from None
    if not math.isfinite(moment):
        raise ValueError(f"'{written}' is not a time")
    return moment


def _utc(moment: datetime) -> datetime:
    """Without a zone it is taken for UTC: a clock that is put forward would tear a hole into the trace."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _short_fraction(text: str) -> str:
    """Traces are written with seven digits after the point; Python reads six."""
    return re.sub(r"(\.\d{6})\d+", r"\1", text)


def _tokens(written: str) -> int:
    if not written:
        return -1
    try:
        number = int(float(written))
    except (ValueError, OverflowError):
        raise ValueError(f"'{written}' is not a number of tokens") from None
    if not 0 <= number <= MOST_TOKENS:
        raise ValueError(f"{written} tokens cannot be asked for; the most is {MOST_TOKENS}")
    return number


def read_prompts(path: Path) -> list[str]:
    """One a line of a text file; of .jsonl and .csv files the `prompt`, `input`, `question` or `text` of each row."""
    if path.suffix == ".csv":
        return _prompts_in_csv(path)
    with _readable(path) as file:
        lines = file.read().split("\n")
    is_json = path.suffix in (".jsonl", ".ndjson")
    wrong = _Wrong(path)
    prompts = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            prompts.append(_sendable(_prompt(line) if is_json else line.rstrip("\r")))
        except ValueError as error:
            wrong.add(number, str(error))
    if not prompts and not wrong.mistakes:
        wrong.add(None, "there is no prompt in it")
    wrong.refuse()
    return prompts


def _prompts_in_csv(path: Path) -> list[str]:
    wrong = _Wrong(path)
    prompts: list[str] = []
    with _readable(path, newline="") as file:
        reader = csv.reader(file)
        try:
            names = [name.strip().lower() for name in next(reader, ())]
            if (place := _place(names, PROMPT_KEYS)) is None:
                raise SpecError([Mistake(str(path), 1, "", f"has no column {_NO_PROMPT}")])
            for row in filter(any, reader):
                try:
                    prompts.append(_sendable(_cell(row, place)))
                except ValueError as error:
                    wrong.add(reader.line_num, str(error))
        except csv.Error as error:
            wrong.add(reader.line_num, f"cannot be read as CSV: {error}")
    if not prompts and not wrong.mistakes:
        wrong.add(None, "there is no prompt in it")
    wrong.refuse()
    return prompts


def _sendable(prompt: str) -> str:
    """
    >>> _sendable("hello")
    'hello'
    """
    try:
        prompt.encode()
    except UnicodeEncodeError:
        raise ValueError("has half a character, which cannot be sent") from None
    if not prompt.strip():
        raise ValueError("has an empty prompt")
    return prompt


def checked_prompt(prompt: str, option: str = "--prompt") -> str:
    try:
        return _sendable(prompt)
    except ValueError as error:
        raise _wrong(option, str(error)) from None


def _prompt(line: str) -> str:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if isinstance(row, str):
        return row
    if isinstance(row, dict):
        for name in PROMPT_KEYS:
            if isinstance(row.get(name), str):
                return str(row[name])
    raise ValueError(f"has no {_NO_PROMPT}")


def _wrong(option: str, text: str) -> SpecError:
    return SpecError([Mistake(option, None, "", text)])
