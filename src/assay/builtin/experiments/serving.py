"""What a model server does with one question at a time: how soon, how fast, at what cost to its machine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from assay.builtin.experiments.listening import ServerProcess
from assay.builtin.experiments.model_server import ModelServer, answered_by, server_of
from assay.builtin.experiments.serving_params import ServingParams, agent_use, params_of, with_model
from assay.execute.agents import make_agent
from assay.execute.outcome import Outcome
from assay.model import AgentUse, AgentVersion, Answer, Better, Metric, Request
from assay.plugin.agent import AgentError, InvalidAnswer
from assay.plugin.experiment import Experiment, ExperimentContext

_WORDS = (
    "apple", "bread", "chair", "cloud", "dance", "earth", "field", "glass",
    "heart", "house", "juice", "knife", "light", "money", "night", "ocean",
    "paper", "queen", "river", "scale", "table", "train", "uncle", "voice",
    "water", "wheel", "world", "youth", "zebra", "stone", "plant", "music",
)  # fmt: skip
_SALT_WORDS = 6


@dataclass(frozen=True, slots=True)
class Served:
    """One answer with what was seen around it; or why there is none."""

    answer: Answer | None = None
    around: Mapping[str, float] | None = None
    failure: str | None = None
    nonsense: str | None = None


class Serving(Experiment):
    """One streamed question to an Ollama or OpenAI-compatible server; `seconds` runs from sending to the last byte.

    Before each execution, untimed: the model is unloaded and seen to be gone (cold), or loaded and seen to be there
    (warm). After it, untimed: the settings are read back from the server, as far as it tells them.
    """

    Params: ClassVar[Any] = ServingParams
    params_of: ClassVar[Any] = staticmethod(params_of)

    metrics: ClassVar[Mapping[str, Metric]] = {
        metric.name: metric
        for metric in (
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
    }

    params: ServingParams
    _agent: Any = None
    _server: ModelServer
    _meant: ServingParams
    """With the name of the model that a variable holds."""
    _process: ServerProcess
    _was_loaded: bool | None = None
    _unready: str | None = None
    """Why the server could not be made ready for an execution, which then has failed."""
    _asked = 0

    @staticmethod
    def agent_of(params: Mapping[str, Any]) -> AgentVersion:
        return AgentVersion(str(params.get("model", "")))

    def setup(self, context: ExperimentContext) -> None:
        use: AgentUse = agent_use(self.params)
        self._agent = make_agent(use)
        self._agent.open()
        url = str(use.options["base_url"])
        self._meant = with_model(self.params)
        self._server = server_of(self._agent, self._meant, url)
        self._process = ServerProcess(url)
        if self._process.problem:
            context.remark(self._process.problem)

    async def prepare_once(self, context: ExperimentContext) -> None:
        self._unready = None
        try:
            await (self._server.unload() if self.params.start == "cold" else self._server.load())
            self._was_loaded = await self._server.is_loaded()
        except AgentError as error:
            self._unready = str(error)

    async def execute_once(self, context: ExperimentContext) -> Served:
        if self._unready is not None:
            return Served(failure=self._unready)
        request = Request(
            str(self._asked), self._prompt(context), max_tokens=self.params.max_tokens, seed=context.seed
        )
        self._asked += 1
        try:
            with self._process.watched() as used:
                answer = await self._agent.answer(request)
            around = {**used.measurements(), **await self._read_back(answer, context)}
        except InvalidAnswer as error:
            return Served(nonsense=str(error))
        except AgentError as error:
            return Served(failure=str(error))
        _remark_on(answer, context)
        return Served(answer, around)

    def read(self, served: Served) -> Outcome:
        if served.answer is None:
            return Outcome(problem=served.nonsense, failure=served.failure)
        answer = served.answer
        output = {"text": answer.output, "model": answer.model}
        return Outcome({**measured(answer), **(served.around or {})}, output, seconds=answer.seconds)

    async def teardown(self, context: ExperimentContext) -> None:
        if self._agent is not None:
            await self._agent.close()

    def _prompt(self, context: ExperimentContext) -> str:
        """Another beginning each time, so that a server which keeps what it has read of a prompt has to read it."""
        if self.params.same_prompt:
            return self.params.prompt
        place = f"{context.run_id} {context.run_dir} {context.process} {self._asked}"
        drawn = hashlib.sha256(place.encode()).digest()[:_SALT_WORDS]
        words = " ".join(_WORDS[byte % len(_WORDS)] for byte in drawn)
        return f"({words})\n{self.params.prompt}"

    async def _read_back(self, answer: Answer, context: ExperimentContext) -> dict[str, float]:
        """What the server says about the settings, for those that were asked for; None where it does not say."""
        told = await self._server.told()
        asked = told.of(self.params)
        unasked = {name: value for name, value in told.settings.items() if name == "num_ctx"}
        context.read_back(
            **self.params.of_the_client(),
            **{**unasked, **asked},
            model=self._answering(answer),
            max_tokens=self._most(answer),
            start=self._started(),
            profile=self._profile(asked),
        )
        if self.params.options:
            context.read_back(options=None)
        if answer.is_simulated:
            context.read_back(simulated=True)
        return dict(told.sizes)

    def _answering(self, answer: Answer) -> str:
        """As it was asked for, where that model answered: what a variable holds is not stored."""
        meant = self._meant.model
        found = answered_by(answer.model, meant)
        return self.params.model if found == meant else found

    def _profile(self, asked: Mapping[str, Any]) -> str:
        """One that the server has not taken whole is none; its own defaults it cannot but take."""
        wrong = [name for name, value in asked.items() if value not in (None, getattr(self.params, name))]
        return "none" if wrong and self.params.profile != "server" else self.params.profile

    def _most(self, answer: Answer) -> int:
        """A server that sends more than was asked for has not taken the limit."""
        return max(self.params.max_tokens, answer.usage.output_tokens or 0)

    def _started(self) -> str | None:
        if self._was_loaded is None:
            return self.params.start
        return "warm" if self._was_loaded else "cold"


def _remark_on(answer: Answer, context: ExperimentContext) -> None:
    if answer.usage.output_tokens is None:
        context.remark("The server does not tell how many tokens it sent: its chunks were counted instead.")
    if not answer.content_seconds:
        context.remark(
            "An answer came in one piece, or with nothing in it: it has no time to the first token."
        )


def measured(answer: Answer) -> dict[str, float]:
    """Figures of one answer: those of the client, and those that the server tells."""
    usage, at, told = answer.usage, answer.content_seconds, answer.durations
    tokens = len(at) if usage.output_tokens is None else usage.output_tokens
    found: dict[str, float | None] = {
        "tokens_per_second": tokens / answer.seconds if answer.seconds else None,
        "ttft": answer.first_token_seconds,
        **_gaps(at),
        "tpot": (answer.seconds - at[0]) / (tokens - 1) if answer.seconds and at and tokens > 1 else None,
        "eval_tokens_per_second": tokens / told["eval"] if told.get("eval") else None,
        **{f"{name}_seconds": seconds for name, seconds in told.items()},
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
