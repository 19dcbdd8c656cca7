"""Agents that do nothing but answer."""

import asyncio


def echo(question):
    return question


async def slow(question):
    await asyncio.sleep(1)
    return question
