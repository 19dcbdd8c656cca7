"""Keeps answers until they are scored, and takes their text out, in whatever dialect and framing they came.

Workers keep answers as they arrived, because reading them would take time from the load. When the load is over, `quality`
and the stress bench read the text here and hand it to scorers. A load may bring back millions; a random sample of them, drawn
as they come (`Reservoir`), is enough to estimate their quality.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from assay.dialects.text import plain_text, text_in
from assay.plugin.json_path import value_at

MOST_ANSWERS = 5000
MOST_CHARACTERS = 256 * 2**20
"""Maximum characters of all of them together."""
T = TypeVar("T")
LONGEST_JUDGED = 2**20
"""Characters of an answer that is scored; a part of a longer one would be judged wrongly."""
TOO_LONG = "\ud800 too long to be judged"
"""Stands for such an answer; half a character as in it is in no text that was decoded."""


def judgeable(output: object) -> str:
    """An output of an agent in the form in which workers hand answers on; `text_of` reads it again.

    >>> text_of(judgeable("yes")), text_of(judgeable({"a": [1]}))
    ('yes', '{"a": [1]}')
    """
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)
    return TOO_LONG if len(text) > LONGEST_JUDGED else json.dumps({"output": text})


def text_of(payload: str, output: str | None = None) -> str:
    """What an answer says, of whatever dialect and whether it was streamed or not; one without any is plain text.

    With `output`, what is there in a document, as in "choices.0.text".

    >>> text_of('data: {"choices":[{"delta":{"content":"4"}}]}\\n\\ndata: {"choices":[{"delta":{"content":"2"}}]}\\n\\ndata: [DONE]\\n')
    '42'
    >>> text_of('{"answer": {"text": "42"}}', "answer.text"), text_of("Paris\\n")
    ('42', 'Paris')
    """
    documents = list(_documents(payload))
    if not documents and not payload.startswith(("data:", "event:", ":", "{")):
        return payload.strip()
    if output is None:
        return "".join(map(text_in, documents))
    texts = []
    for document in documents:
        # In a stream only some documents have the output.
        with contextlib.suppress(LookupError):
            texts.append(plain_text(value_at(document, output)))
    return "".join(texts)


def _documents(payload: str) -> Iterator[Any]:
    """The JSON documents of an answer: the whole of it, or else each line of a stream that holds one."""
    try:
        yield json.loads(payload)
        return
    except ValueError:
        pass
    for line in payload.splitlines():
        text = line.removeprefix("data:").strip()
        if text.startswith("{"):
            try:
                yield json.loads(text)
            except ValueError:
                continue


class Reservoir(Generic[T]):
    """A random sample of bounded size: of more than can be kept, each answer has the same chance to be among them.

    This is reservoir sampling (Vitter's algorithm R), with a fixed seed. Where answers are so long that the sample would
    take too many characters, half of it is dropped at random, and it stays that small.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[T, int]] = []
        self._seen, self._most, self._characters = 0, MOST_ANSWERS, 0
        self._chance = random.Random(1)

    def __iter__(self) -> Iterator[T]:
        return (answer for answer, _ in self._kept)

    def add(self, answer: T, characters: int) -> None:
        self._seen += 1
        if len(self._kept) < self._most:
            self._kept.append((answer, characters))
        elif (place := self._chance.randrange(self._seen)) < self._most:
            self._characters -= self._kept[place][1]
            self._kept[place] = (answer, characters)
        else:
            return
        self._characters += characters
        while self._characters > MOST_CHARACTERS and len(self._kept) > 1:
            self._chance.shuffle(self._kept)
            del self._kept[len(self._kept) // 2 :]
            self._most = len(self._kept)
            self._characters = sum(size for _, size in self._kept)
