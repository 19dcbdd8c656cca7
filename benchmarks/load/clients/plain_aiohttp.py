"""A careful client on aiohttp and uvloop: every event is parsed, the time taken when its bytes come out of the stream."""

from __future__ import annotations

import argparse
import json
import time

import aiohttp
import uvloop
from drive import BODY, Seen, arguments, drive


async def main(asked: argparse.Namespace) -> None:
    body = json.dumps(BODY).encode()
    headers = {"content-type": "application/json"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask(seen: Seen, due: float) -> None:
            async with session.post(asked.url, data=body, headers=headers) as response:
                before, held = 0.0, b""
                async for piece in response.content.iter_any():
                    now = time.perf_counter()
                    *events, held = (held + piece).split(b"\n\n")
                    for event in events:
                        if not _has_content(event):
                            continue
                        if before:
                            seen.gaps.append(now - before)
                        else:
                            seen.first.append(now - due)
                        before = now

        await drive(ask, asked)


def _has_content(event: bytes) -> bool:
    if not event.startswith(b"data: ") or event == b"data: [DONE]":
        return False
    choices = json.loads(event[6:])["choices"]
    return bool(choices and choices[0]["delta"].get("content"))


if __name__ == "__main__":
    uvloop.run(main(arguments()))
