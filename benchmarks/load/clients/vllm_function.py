"""Asks by the request function of vLLM's own benchmark, in a session such as that benchmark makes.

The function is read from its file: the package itself would want gigabytes of others to be imported. As in that benchmark, the
loop is asyncio's own, and an event with a role alone counts as the first token.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import aiohttp
from drive import BODY, Seen, arguments, drive

SIX_HOURS = 6 * 60 * 60


def _functions() -> ModuleType:
    name = "endpoint_request_func"
    path = Path(sysconfig.get_path("platlib")) / "vllm" / "benchmarks" / "lib" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def main(asked: argparse.Namespace) -> None:
    functions = _functions()
    most = asked.concurrency or 0
    connector = aiohttp.TCPConnector(
        limit=most, limit_per_host=most, ttl_dns_cache=300, keepalive_timeout=60, ssl=False
    )
    async with aiohttp.ClientSession(
        connector=connector, trust_env=True, timeout=aiohttp.ClientTimeout(total=SIX_HOURS)
    ) as session:

        async def ask(seen: Seen, due: float) -> None:
            wanted = functions.RequestFuncInput(
                prompt=BODY["messages"][0]["content"],
                api_url=asked.url,
                prompt_len=5,
                output_len=16,
                model=BODY["model"],
            )
            output = await functions.async_request_openai_chat_completions(wanted, session)
            if not output.success:
                raise SystemExit(output.error)
            seen.first.append(output.ttft)
            seen.gaps += output.itl

        await drive(ask, asked)


if __name__ == "__main__":
    options = arguments()
    asyncio.run(main(options))
