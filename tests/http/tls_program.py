"""Asks an OpenAI server so many questions on one connection, every second one streamed, and prints the answers."""

from __future__ import annotations

import http.client
import json
import os
import sys
from urllib.parse import urlsplit


def content(text: str, is_streamed: bool) -> str:
    if not is_streamed:
        return str(json.loads(text)["choices"][0]["message"]["content"])
    events = [line[6:] for line in text.splitlines() if line.startswith("data: ") and "[DONE]" not in line]
    choices = [choice for event in events for choice in json.loads(event)["choices"]]
    return "".join(choice["delta"].get("content", "") for choice in choices)


def main(count: int) -> None:
    address = urlsplit(os.environ["OPENAI_BASE_URL"])
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
    for number in range(count):
        body = {"messages": [{"role": "user", "content": f"Question {number}?"}], "stream": number % 2 == 1}
        connection.request("POST", f"{address.path}/chat/completions", json.dumps(body))
        print(content(connection.getresponse().read().decode(), number % 2 == 1))


if __name__ == "__main__":
    main(int(sys.argv[1]))
