"""Agents that do nothing but answer."""

import asyncio
import time


def echo(question):
    return question


async def slow(question):
    await asyncio.sleep(1)
    return question


async def brief(question):
    await asyncio.sleep(0.1)
    return question


def busy(question):
    """Computes for 50 ms of processor time."""
    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass
    return question
