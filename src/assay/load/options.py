"""The options of a load. Each is declared here, once.

`assay load` and `assay stress` make their command-line options from the fields of `LoadOptions` (cli/load.py), and the experiment
`load` makes its params from them (builtin/experiments/load.py), which `assay run load --set`, specs and `assay.run` take. To add
an option, add a field with `_option` and use it where the load is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_type_hints

from assay.errors import Mistake, SpecError

Group = Literal["traffic", "ending", "server", "generators", "inputs", "requests", "params"]
"""Where an option stands in the help of `assay load`. `requests` are those of `assay stress` as well; `params` are no options of
the command line: they can only be set as params of the experiment."""


@dataclass(frozen=True, slots=True)
class WrittenOption:
    """How people write an option, and its help text."""

    group: Group
    help: str
    """As the command line shows it; params show the same text with the names of params for those of options."""
    metavar: str | None = None
    param_help: str = ""
    """For params, where the text of the command line does not fit."""
    number: type[int] | type[float] | None = None
    """The type of number that a spec may have instead of the text, such as a time in seconds."""
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    """The command line refuses what is outside `least` and `most` by itself."""
    is_text: bool = False
    """Whether the command line takes it as text, which it reads itself."""
    needs_server: bool = False
    """Whether it says nothing to an agent that runs its own code."""


@dataclass(frozen=True, slots=True)
class LoadOption:
    """An option of a load: its name, its type and default as in `LoadOptions`, and how it is written."""

    name: str
    type: Any
    default: Any
    written: WrittenOption

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"


def _option(default: Any, group: Group, help: str, metavar: str | None = None, **more: Any) -> Any:
    """A field of `LoadOptions` with its help in the metadata, so that the option is declared in one place; `more` as in
    `WrittenOption`. It returns Any, as `dataclasses.field` does, so that the type of the field is the one that is written."""
    return field(default=default, metadata={"written": WrittenOption(group, help, metavar, **more)})


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """As written on the command line or in a spec; what is None was not given.

    Values stay as people write them, as in "500ms" or "10%", and are read where the load is built: a default that follows from
    other options is decided there, and messages can quote what was written. The order of the fields is that of the help.
    """

    target: str = field(
        metadata={"written": WrittenOption("params", "A URL, or the name of an agent of the project.")}
    )
    more_targets: tuple[str, ...] = _option(
        (), "params", "URLs that requests are sent to in turn with the target."
    )
    prompt_seed: int | None = _option(
        None,
        "params",
        "Seed for what makes prompts unique. Default: random, so that no load hits the prompt cache of another.",
    )
    concurrency: int | None = _option(
        None,
        "traffic",
        "Concurrent requests (closed loop); with --rate, the maximum in flight.",
        "N[,N…]",
        is_text=True,
    )
    rate: float | None = _option(
        None,
        "traffic",
        "Requests per second (open loop), no matter how fast answers come back.",
        "R",
        is_text=True,
    )
    arrivals: str | None = _option(
        None, "traffic", "constant (default), poisson, or trace:FILE (.csv or .jsonl, also .gz).", "HOW"
    )
    speed: float | None = _option(None, "traffic", "Replay a trace X times as fast.", "X")
    window: str | None = _option(None, "traffic", "Replay this part of a trace: 10m..20m", "FROM..TO")
    stages: str | None = _option(
        None, "traffic", 'Times and rates: "10s@50,20s@200,10s@50"; a ramp: 10s@50..200', "TEXT"
    )
    duration: str | None = _option(
        None,
        "traffic",
        "How long to send requests (default: 10s); with --find-capacity, the length of a step (default: 4s).",
        "S",
        number=float,
    )
    requests: int | None = _option(None, "traffic", "How many requests to send.", "N")
    warmup: str | None = _option(
        None,
        "traffic",
        "Time at the start that does not count; default: detected automatically.",
        "S",
        number=float,
    )
    think: str | None = _option(
        None,
        "traffic",
        "With --concurrency or sessions: pause between an answer and the next request: 1s, 1s±300ms, 0.5s..2s or exp:1s.",
        "S",
        number=float,
    )
    cancel_after: str | None = _option(
        None,
        "traffic",
        "Close the connection when an answer takes longer.",
        "S",
        number=float,
        needs_server=True,
    )
    cancel_share: str | None = _option(
        None, "traffic", "Share of requests that --cancel-after applies to: 10%", "P", number=float
    )
    abort_on: str | None = _option(
        None,
        "ending",
        'End the load early when a condition holds, as in "error_rate>50%,ttft_p95>5s".',
        "TEXT",
    )
    server_metrics: str | None = _option(
        None,
        "server",
        "Prometheus endpoint of the server, read once a second and shown with the load.",
        "URL",
    )
    executor: str | None = _option(
        None,
        "generators",
        "Executor that runs the load generators; default: local. See assay list executors.",
        "NAME",
        needs_server=True,
    )
    generators: int | None = _option(
        None,
        "generators",
        "Divide the load among N load generators; default: 1, and with another executor one on each of its nodes.",
        "N",
        least=1,
        most=10_000,
        needs_server=True,
    )
    prompt_cache: str | None = _option(
        None,
        "inputs",
        "unique (default): give each prompt its own prefix, so that the prompt cache never hits; keep: send prompts as written.",
        choices=("unique", "keep"),
    )
    shared_prefix: int | None = _option(
        None,
        "inputs",
        "Begin all prompts with the same text of this many tokens, followed by a unique rest.",
        "TOKENS",
        least=1,
        needs_server=True,
    )
    input_tokens: str | None = _option(
        None,
        "inputs",
        "Send synthetic prompts of about this many tokens: 500, 500±100, 500..700 or exp:500.",
        "N",
        number=int,
    )
    output_tokens: str | None = _option(
        None, "inputs", "Maximum output tokens, written like --input-tokens.", "N", number=int
    )
    min_tokens: int | None = _option(
        None,
        "inputs",
        "Send min_tokens (vLLM, SGLang): minimum output tokens.",
        "N",
        least=1,
        needs_server=True,
    )
    ignore_eos: bool = _option(
        False,
        "inputs",
        "Send ignore_eos (vLLM, SGLang, llama.cpp): answers run to the maximum length.",
        needs_server=True,
    )
    tokenizer: str | None = _option(
        None, "inputs", "The model's tokenizer.json, for synthetic prompts of the exact length.", "FILE"
    )
    model: str | None = _option(None, "requests", "Model to ask for.", "M", needs_server=True)
    prompt: str | None = _option(None, "requests", "Prompt to send with every request.", "TEXT")
    dataset: str | None = _option(
        None,
        "requests",
        "Prompts to send in turn: a suite (its answers are scored), .jsonl, .csv or lines of text.",
        "FILE",
    )
    max_tokens: int | None = _option(None, "requests", "Maximum output tokens per request.", "N", least=1)
    stream: bool = _option(True, "requests", "Whether answers are streamed; default: yes.")
    timeout: str | None = _option(
        None, "requests", "Count a request that takes longer as failed; default: 60s.", "S", number=float
    )
    slo: str | None = _option(None, "requests", 'Objective, as in "ttft_p95<200ms,error_rate<1%".', "TEXT")
    allow_host: tuple[str, ...] = _option(
        (),
        "requests",
        "Allow requests to this host; required for any host but this machine; may be repeated.",
        "H",
        param_help="Hosts to allow requests to; required for any host but this machine.",
    )
    header: tuple[str, ...] = _option(
        (),
        "requests",
        "Header to send; ${NAME} is read from the environment.",
        "'NAME: VALUE'",
        param_help="Headers to send, as NAME: VALUE; ${NAME} is read from the environment.",
        needs_server=True,
    )
    insecure: bool = _option(False, "requests", "Accept any TLS certificate.", needs_server=True)
    ca_file: str | None = _option(
        None,
        "requests",
        "Certificates (PEM) to trust instead of the system's, with https.",
        "FILE",
        needs_server=True,
    )
    workers: int = _option(
        1, "requests", "Processes that send requests, per load generator; default: 1.", "N"
    )
    seed: int = _option(
        1,
        "requests",
        "Seed for random arrivals and lengths and, if given, for the unique part of prompts.",
        "N",
        least=0,
        most=2**32 - 1,
        param_help="Seed for random arrivals and lengths.",
    )

    def __post_init__(self) -> None:
        if self.prompt is not None and self.dataset is not None:
            raise wrong_option("--dataset", "Give either --prompt or --dataset.")


def load_options(group: Group | None = None) -> Iterator[LoadOption]:
    """All options of a load, or those of a group, in the order in which help shows them."""
    types = get_type_hints(LoadOptions)
    for item in fields(LoadOptions):
        written: WrittenOption = item.metadata["written"]
        if group in (None, written.group):
            yield LoadOption(item.name, types[item.name], item.default, written)


def wrong_option(option: str, text: str) -> SpecError:
    """A mistake in an option, which is named as on the command line, also where it was written as a param."""
    return SpecError([Mistake(option, None, "", text)])
