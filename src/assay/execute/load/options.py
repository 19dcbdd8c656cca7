"""The options of a load, as written on the command line or in a spec."""

from __future__ import annotations

from dataclasses import dataclass

from assay.errors import Mistake, SpecError


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """As written on the command line or in a spec; what is None was not given."""

    target: str
    model: str | None = None
    prompt: str | None = None
    dataset: str | None = None
    concurrency: int | None = None
    rate: float | None = None
    arrivals: str | None = None
    stages: str | None = None
    duration: str | None = None
    requests: int | None = None
    warmup: str | None = None
    max_tokens: int | None = None
    stream: bool = True
    think: str | None = None
    timeout: str | None = None
    workers: int = 1
    slo: str | None = None
    allow_host: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    insecure: bool = False
    ca_file: str | None = None
    seed: int = 1
    prompt_seed: int | None = None
    """Of what makes prompts differ; None takes one by chance, so that no load meets what a server kept of another."""
    prompt_cache: str | None = None
    shared_prefix: int | None = None
    input_tokens: str | None = None
    output_tokens: str | None = None
    min_tokens: int | None = None
    ignore_eos: bool = False
    tokenizer: str | None = None
    speed: float | None = None
    window: str | None = None
    cancel_after: str | None = None
    cancel_share: str | None = None
    more_targets: tuple[str, ...] = ()
    """URLs that requests go to in turn with the target."""
    abort_on: str | None = None
    server_metrics: str | None = None

    def __post_init__(self) -> None:
        if self.prompt is not None and self.dataset is not None:
            raise wrong_option("--dataset", "Give either --prompt or --dataset.")


def wrong_option(option: str, text: str) -> SpecError:
    return SpecError([Mistake(option, None, "", text)])
