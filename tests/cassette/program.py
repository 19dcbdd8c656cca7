"""A small program that speaks to LLM providers with nothing but the standard library, as users' programs do."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any


def ask(url: str, body: dict[str, Any], headers: dict[str, str]) -> str:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"content-type": "application/json", **headers}
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return str(answer.read().decode())


def openai(prompt: str, stream: bool = False, **keys: Any) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], "stream": stream, **keys}
    key = {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    text = ask(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", body, key)
    if not stream:
        return str(json.loads(text)["choices"][0]["message"]["content"])
    events = [line[6:] for line in text.splitlines() if line.startswith("data: ") and "[DONE]" not in line]
    chunks = [json.loads(event)["choices"] for event in events]
    return "".join(choices[0]["delta"].get("content") or "" for choices in chunks if choices)


def anthropic(prompt: str) -> str:
    body = {"model": "m", "max_tokens": 20, "messages": [{"role": "user", "content": prompt}]}
    headers = {"x-api-key": "a-key-of-the-program", "anthropic-version": "2023-06-01"}
    return str(
        json.loads(ask(f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages", body, headers))["content"][0][
            "text"
        ]
    )


def ollama(prompt: str) -> str:
    body = {"model": "m", "prompt": prompt, "stream": False}
    return str(json.loads(ask(f"{os.environ['OLLAMA_HOST']}/api/generate", body, {}))["response"])


def timed(asking: Callable[[], str]) -> str:
    started = time.perf_counter()
    asking()
    return str(time.perf_counter() - started)


PROVIDERS: dict[str, Callable[[str], str]] = {
    "openai": openai,
    "stream": lambda text: openai(text, stream=True),
    "secret": lambda text: openai(text, user=os.environ["OPENAI_API_KEY"], api_key="in the body"),
    "timed": lambda text: timed(lambda: openai(text, stream=True)),
    "warm": lambda text: openai(text, temperature=1),
    "anthropic": anthropic,
    "ollama": ollama,
}


def main() -> int:
    if sys.argv[1] == "wait":
        print("waiting", flush=True)
        time.sleep(600)
    for word in sys.argv[1:]:
        provider, _, prompt = word.partition(":")
        try:
            print(PROVIDERS[provider](prompt))
        except urllib.error.HTTPError as error:
            print(error.code, error.read().decode())
            return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
