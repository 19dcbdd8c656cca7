"""Agents made from their definitions, opened once in a process and kept open while it has use for them.

`make_agent` turns a definition (`AgentUse`) into an object of the plug-in's class: it fills in ${NAME}, adds `folder` and
`concurrency` where the class has such parameters, and puts a cassette in the place of the network where one is named.
`AgentPool` opens agents, waits for async ones on an event loop of its own, and closes them all.
"""

from __future__ import annotations

import inspect
import os
import re
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError, PlanError
from assay.model import AgentUse
from assay.model.redaction import known_secrets
from assay.plugin import lookup
from assay.plugin.agent import Agent, BadAgent
from assay.plugin.interruption import BY_USER, run_coroutine

if TYPE_CHECKING:
    import asyncio

_NAME = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def make_agent(use: AgentUse, concurrency: int = 1) -> Agent:
    """An agent, not opened yet; PlanError when its definition cannot work."""
    member = lookup.find("agents", use.type)
    written = dict(use.options)
    cassette = written.pop("cassette", None)
    known = os.environ if cassette is None else defaultdict(lambda: UNUSED, os.environ)
    options = expand_variables(written, known, use.name)
    most = options.pop("concurrency", concurrency)
    given_by_us = {"folder": use.folder, "concurrency": min(concurrency, most)}
    if cassette is not None:
        given_by_us["api_key"] = UNUSED
    parameters = inspect.signature(member).parameters
    options = {name: value for name, value in given_by_us.items() if name in parameters} | options
    try:
        agent: Agent = member(**options)
    except BadAgent as problem:
        raise PlanError(f"Agent '{use.name}': {problem}") from None
    except AssayError:
        raise
    except Exception as error:
        raise PlanError(_describe_refusal(use, options, error)) from error
    if cassette is not None:
        _insert(cassette, agent, use)
    return agent


UNUSED = "unused-because-replayed"
"""In the place of keys that are not set: an agent that is answered from a cassette does not need them."""


def _insert(cassette: object, agent: Agent, use: AgentUse) -> None:
    """Have an agent answered from a cassette; PlanError for one that makes no calls of models."""
    if not hasattr(agent, "answer_from"):
        raise PlanError(f"Agent '{use.name}': type '{use.type}' makes no LLM calls; remove 'cassette'.")
    try:
        agent.answer_from(cassette, Path(use.folder))
    except PlanError as problem:
        raise PlanError(f"Agent '{use.name}': {problem}") from None


def _describe_refusal(use: AgentUse, options: Mapping[str, Any], error: Exception) -> str:
    """Which option an agent's class cannot work with; else what it raised, as it may be anybody's class."""
    # Imported here as it costs time that a worker with a sound agent should not spend.
    from assay.plugin.options import option_problems

    if problems := option_problems("agents", use.type, options):
        return "\n".join(f"Agent '{use.name}': {problem.text}" for problem in problems)
    cause = f"{type(error).__name__}: {error}"
    if isinstance(error, TypeError):
        # Without the name of the constructor: the user wrote keys of a file, not a call.
        cause = re.sub(r"^\w+(\.\w+)*\(\) ", "", str(error))
        cause = cause.replace("got an unexpected keyword argument", "does not know the key")
    return f"Agent '{use.name}' of type '{use.type}': {cause}"


def expand_variables(value: Any, environment: Mapping[str, str], agent: str) -> Any:
    """`${NAME}` read from the environment, `${NAME:-default}` with a default; what is filled in is never stored."""
    if isinstance(value, str):
        return _NAME.sub(lambda match: _variable(match, environment, agent), value)
    if isinstance(value, Mapping):
        return {key: expand_variables(item, environment, agent) for key, item in value.items()}
    if isinstance(value, list):
        return [expand_variables(item, environment, agent) for item in value]
    return value


def _variable(match: re.Match[str], environment: Mapping[str, str], agent: str) -> str:
    name, default = match[1], match[2]
    known_secrets().learn_variables(match[0], environment)
    if default is not None:
        return environment.get(name, default)
    try:
        return environment[name]
    except KeyError:
        raise PlanError(
            f"Agent '{agent}' needs the environment variable '{name}', which is not set."
        ) from None


class AgentPool:
    """The open agents of one process, with the event loop they live on.

    Agents are made and opened when they are first asked for, and are closed together. Scorers that ask agents get the
    pool of their process as the keyword `agent_pool`; the process that makes a pool closes it.
    """

    def __init__(self) -> None:
        self._open: dict[AgentKey, Agent] = {}
        self._runner: asyncio.Runner | None = None

    def open(self, use: AgentUse, concurrency: int = 1) -> Agent:
        """The agent of this definition, open; PlanError when the definition cannot work."""
        key = agent_key(use)
        if key not in self._open:
            agent = make_agent(use, concurrency)
            self.wait(agent.open())
            self._open[key] = agent
        return self._open[key]

    def wait(self, result: Any) -> Any:
        """The value of a call that may have been async: what is awaitable is awaited on the loop of the pool."""
        return run_coroutine(self.runner, result) if inspect.isawaitable(result) else result

    @property
    def runner(self) -> asyncio.Runner:
        if self._runner is None:
            import asyncio

            factory: Any = None
            with suppress(ImportError):
                import uvloop

                factory = uvloop.new_event_loop
            self._runner = asyncio.Runner(loop_factory=factory)
        return self._runner

    def close(self) -> None:
        for agent in self._open.values():
            try:
                self.wait(agent.close())
            except BaseException as error:
                # What was measured stands; an agent that cannot be closed is ended with its process.
                if isinstance(error, BY_USER):
                    raise
        self._open.clear()
        if self._runner is not None:
            self._runner.close()
            self._runner = None


AgentKey = str


def agent_key(use: AgentUse) -> AgentKey:
    """Agents with the same key are the same: one process can serve all their trials."""
    return repr((use.name, use.type, sorted(use.options.items(), key=str), use.version, use.folder))
