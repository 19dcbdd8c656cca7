"""A client that does for a request what the request function of vLLM's benchmark does, written anew.

The package is too big to be installed for one function. Like that function it makes the body anew for every request, decodes
each piece to text, splits at empty lines, strips, parses every event, takes the time for each and puts the text together; it
runs on asyncio's own loop, in a session whose connections are as many as requests may be under way. As there, an event with
a role alone counts as the first token.
"""

from __future__ import annotations

import argparse
import asyncio
import codecs
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import aiohttp
from drive import BODY, Seen, arguments, drive


@dataclass
class Output:
    text: str = ""
    tokens: int = 0
    latency: float = 0.0
    first: float = 0.0
    gaps: list[float] = field(default_factory=list)


class Events:
    def __init__(self) -> None:
        self._text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def add(self, piece: bytes) -> Iterator[str]:
        self._text += self._decoder.decode(piece)
        while "\n\n" in self._text:
            event, self._text = self._text.split("\n\n", 1)
            if event := event.strip():
                yield event


async def main(asked: argparse.Namespace) -> None:
    connector = aiohttp.TCPConnector(
        limit=asked.concurrency or 0, limit_per_host=asked.concurrency or 0, ttl_dns_cache=300
    )
    async with aiohttp.ClientSession(
        connector=connector, timeout=aiohttp.ClientTimeout(total=6 * 3600)
    ) as session:

        async def ask(seen: Seen, due: float) -> None:
            output = await _asked(session, asked.url)
            seen.first.append(output.first)
            seen.gaps += output.gaps

        await drive(ask, asked)


async def _asked(session: aiohttp.ClientSession, url: str) -> Output:
    output, events, has_begun = Output(), Events(), False
    start = before = time.perf_counter()
    payload = {**BODY, "max_completion_tokens": 16}
    async with session.post(url=url, json=payload, headers={"Content-Type": "application/json"}) as response:
        async for piece in response.content.iter_any():
            for event in events.add(piece):
                text = event.removeprefix("data: ")
                if text.startswith(":") or text == "[DONE]":
                    continue
                now = time.perf_counter()
                told = json.loads(text)
                if choices := told.get("choices"):
                    if has_begun:
                        output.gaps.append(now - before)
                    else:
                        has_begun, output.first = True, now - start
                    output.text += choices[0]["delta"].get("content") or ""
                    before = now
                elif usage := told.get("usage"):
                    output.tokens = usage.get("completion_tokens")
    output.latency = before - start
    return output


if __name__ == "__main__":
    options = arguments()
    asyncio.run(main(options))
