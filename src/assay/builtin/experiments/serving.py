"""What a model server does with one question at a time: how soon, how fast, at what cost to its machine.

One execution is one question. `model_server` makes the server ready before it and reads the settings back after it,
`server_process` watches the server's CPU and memory meanwhile, and `serving_params` has the params. Times are taken by the
client where the bytes arrive; durations that the server itself reports are recorded beside them under their own names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from assay.builtin.experiments.components.scales import SERVING
from assay.builtin.experiments.model_server import ModelServer, resolve_answering_model, server_of
from assay.builtin.experiments.server_process import ServerProcess
from assay.builtin.experiments.serving_params import ServingParams, agent_use, params_of, with_model
from assay.model import AgentUse, AgentVersion, Answer, Better, Metric, Request, describe_metrics
from assay.plugin.agent import AgentError, InvalidAnswer
from assay.plugin.agent_pool import make_agent
from assay.plugin.experiment import Experiment, ExperimentContext
from assay.plugin.grades import GradeScale
from assay.plugin.outcome import Outcome

_WORDS = (
    "apple", "bread", "chair", "cloud", "dance", "earth", "field", "glass",
    "heart", "house", "juice", "knife", "light", "money", "night", "ocean",
    "paper", "queen", "river", "scale", "table", "train", "uncle", "voice",
    "water", "wheel", "world", "youth", "zebra", "stone", "plant", "music",
)  # fmt: skip
_SALT_WORDS = 6


@dataclass(frozen=True, slots=True)
class ServingAttempt:
    """One answer with what was seen around it; or why there is none."""

    answer: Answer | None = None
    around: Mapping[str, float] | None = None
    failure: str | None = None
    problem: str | None = None


class Serving(Experiment):
    """One streamed question to an Ollama or OpenAI-compatible server; `seconds` runs from sending to the last byte.

    Before each execution, untimed: the model is unloaded and seen to be gone (cold), or loaded and seen to be there
    (warm). After it, untimed: the settings are read back from the server, as far as it tells them.
    """

    Params: ClassVar[Any] = ServingParams
    findings: ClassVar[Sequence[str]] = ("grades",)
    grades: ClassVar[Sequence[GradeScale]] = SERVING
    params_of: ClassVar[Any] = staticmethod(params_of)

    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(
        Metric("ttft", "s", Better.LOWER),
        Metric("itl", "s", Better.LOWER),
        Metric("itl_max", "s", Better.LOWER),
        Metric("tpot", "s", Better.LOWER),
        Metric("tokens_per_second", "1/s", Better.HIGHER),
        Metric("eval_tokens_per_second", "1/s", Better.HIGHER),
        Metric("load_seconds", "s", Better.LOWER),
        Metric("prompt_eval_seconds", "s", Better.LOWER),
        Metric("eval_seconds", "s", Better.LOWER),
        Metric("total_seconds", "s", Better.LOWER),
        Metric("input_tokens", "tokens"),
        Metric("output_tokens", "tokens"),
        Metric("cached_tokens", "tokens"),
        Metric("server_cpu_seconds", "s", Better.LOWER),
        Metric("server_cpu_percent", "%"),
        Metric("server_memory_bytes", "bytes", Better.LOWER),
        Metric("model_bytes", "bytes", Better.LOWER),
        Metric("model_vram_bytes", "bytes"),
    )

    params: ServingParams
    _agent: Any = None
    _server: ModelServer
    _resolved: ServingParams
    """With the name of the model that a variable holds."""
    _process: ServerProcess
    _was_loaded: bool | None = None
    _unready: str | None = None
    """Why the server could not be made ready for an execution, which then has failed."""
    _request_count = 0

    @staticmethod
    def agent_of(params: Mapping[str, Any]) -> AgentVersion:
        return AgentVersion(str(params.get("model", "")))

    def setup(self, context: ExperimentContext) -> None:
        """Open the agent and find the server's process; the model is loaded or unloaded before each execution instead."""
        use: AgentUse = agent_use(self.params)
        self._agent = make_agent(use)
        self._agent.open()
        url = str(use.options["base_url"])
        self._resolved = with_model(self.params)
        self._server = server_of(self._agent, self._resolved, url)
        self._process = ServerProcess(url)
        if self._process.problem:
            context.remark(self._process.problem)

    async def prepare_once(self, context: ExperimentContext) -> None:
        """Untimed. A server that cannot be made ready fails this execution and no other: the next one tries again."""
        self._unready = None
        try:
            await (self._server.unload() if self.params.start == "cold" else self._server.load())
            self._was_loaded = await self._server.is_loaded()
        except AgentError as error:
            self._unready = str(error)

    async def execute_once(self, context: ExperimentContext) -> ServingAttempt:
        # Errors are returned and not raised, so that `read` can tell a server that failed from one whose answer is invalid.
        if self._unready is not None:
            return ServingAttempt(failure=self._unready)
        request = Request(
            str(self._request_count),
            self._prompt(context),
            max_tokens=self.params.max_tokens,
            seed=context.seed,
        )
        self._request_count += 1
        try:
            with self._process.watch() as used:
                answer = await self._agent.answer(request)
            around = {**used.measurements(), **await self._read_back(answer, context)}
        except InvalidAnswer as error:
            return ServingAttempt(problem=str(error))
        except AgentError as error:
            return ServingAttempt(failure=str(error))
        _remark_on(answer, context)
        return ServingAttempt(answer, around)

    def read(self, attempt: ServingAttempt) -> Outcome:
        if attempt.answer is None:
            return Outcome(problem=attempt.problem, failure=attempt.failure)
        answer = attempt.answer
        output = {"text": answer.output, "model": answer.model}
        return Outcome(
            {**compute_answer_metrics(answer), **(attempt.around or {})}, output, seconds=answer.seconds
        )

    async def teardown(self, context: ExperimentContext) -> None:
        if self._agent is not None:
            await self._agent.close()

    def _prompt(self, context: ExperimentContext) -> str:
        """Another beginning each time, so that a server which keeps what it has read of a prompt has to read it."""
        if self.params.same_prompt:
            return self.params.prompt
        # From the place of the execution in the run, so that a run repeated with another id meets no cache of this one.
        place = f"{context.run_id} {context.run_dir} {context.process} {self._request_count}"
        digest = hashlib.sha256(place.encode()).digest()[:_SALT_WORDS]
        words = " ".join(_WORDS[byte % len(_WORDS)] for byte in digest)
        return f"({words})\n{self.params.prompt}"

    async def _read_back(self, answer: Answer, context: ExperimentContext) -> dict[str, float]:
        """Record the params as they really were; None for those that the server does not report. Returns the model's sizes."""
        params = self.params
        report = await self._server.report()
        reported = report.of(params)
        unasked = {name: value for name, value in report.settings.items() if name == "num_ctx"}
        model = resolve_answering_model(answer.model, self._resolved.model)
        if model == self._resolved.model:
            # As it was written: what a variable holds is not stored.
            model = params.model
        start: str = params.start
        if self._was_loaded is not None:
            start = "warm" if self._was_loaded else "cold"
        # A profile is in effect only if the server used every option of it; `server` sets none, so it always is.
        ignored = [name for name, value in reported.items() if value not in (None, getattr(params, name))]
        profile = "none" if ignored and params.profile != "server" else params.profile
        context.read_back(
            **params.of_the_client(),
            **{**unasked, **reported},
            model=model,
            # A server that sends more tokens than were asked for ignored the limit.
            max_tokens=max(params.max_tokens, answer.usage.output_tokens or 0),
            start=start,
            profile=profile,
        )
        if self.params.options:
            context.read_back(options=None)
        if answer.is_simulated:
            context.read_back(simulated=True)
        return dict(report.sizes)


def _remark_on(answer: Answer, context: ExperimentContext) -> None:
    if answer.usage.output_tokens is None:
        context.remark("The server does not report how many tokens it sent: its chunks were counted instead.")
    if not answer.content_seconds:
        context.remark("An answer came in one piece or was empty: it has no time to first token.")


def compute_answer_metrics(answer: Answer) -> dict[str, float]:
    """Figures of one answer: those of the client, and the durations that the server reports.

    TPOT is the time after the first token divided by the tokens after it. Where the server does not count tokens, each chunk
    counts as one. Figures that an answer does not have are left out.
    """
    usage, at, durations = answer.usage, answer.content_seconds, answer.durations
    tokens = len(at) if usage.output_tokens is None else usage.output_tokens
    found: dict[str, float | None] = {
        "tokens_per_second": tokens / answer.seconds if answer.seconds else None,
        "ttft": answer.first_token_seconds,
        **_gaps(at),
        "tpot": (answer.seconds - at[0]) / (tokens - 1) if answer.seconds and at and tokens > 1 else None,
        "eval_tokens_per_second": tokens / durations["eval"] if durations.get("eval") else None,
        **{f"{name}_seconds": seconds for name, seconds in durations.items()},
        "input_tokens": usage.input_tokens,
        "output_tokens": tokens,
        "cached_tokens": usage.cached_tokens,
    }
    return {name: float(value) for name, value in found.items() if value is not None}


def _gaps(at: tuple[float, ...]) -> dict[str, float]:
    """Between pieces of content: the one in the middle, and the longest, which a mean would hide."""
    gaps = sorted(late - early for early, late in pairwise(at))
    if not gaps:
        return {}
    middle = len(gaps) // 2
    median = gaps[middle] if len(gaps) % 2 else (gaps[middle - 1] + gaps[middle]) / 2
    return {"itl": median, "itl_max": gaps[-1]}
