"""Agents asked as the runner asks them: opened, asked, closed, whether sync or async."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from typing import Any

from assay.model import Answer, Request
from assay.plugin.agent import AgentError


def answers(agent: Any, *inputs: object, at_once: bool = False) -> list[Any]:
    return answers_to(
        agent, [Request(f"case-{number}", value) for number, value in enumerate(inputs)], at_once
    )


def answer(agent: Any, value: object = "hello") -> Any:
    return answers(agent, value)[0]


def outcomes(agent: Any, *inputs: object) -> list[Answer | AgentError]:
    """One after the other; a failure is an outcome like any other."""
    asked = [Request(f"case-{number}", value) for number, value in enumerate(inputs)]
    return asyncio.run(_outcomes(agent, asked))


def answers_to(agent: Any, requests: Sequence[Request], at_once: bool = False) -> list[Any]:
    return asyncio.run(_asked(agent, requests, at_once))


async def _asked(agent: Any, requests: Sequence[Request], at_once: bool) -> list[Any]:
    await _settled(agent.open())
    try:
        if at_once:
            return await asyncio.gather(*(agent.answer(request) for request in requests))
        return [await _settled(agent.answer(request)) for request in requests]
    finally:
        await _settled(agent.close())


async def _outcomes(agent: Any, requests: Sequence[Request]) -> list[Answer | AgentError]:
    await _settled(agent.open())
    found: list[Answer | AgentError] = []
    try:
        for request in requests:
            try:
                found.append(await _settled(agent.answer(request)))
            except AgentError as error:
                found.append(error)
    finally:
        await _settled(agent.close())
    return found


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
