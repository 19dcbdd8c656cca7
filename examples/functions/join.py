"""Three ways to make one string of many."""

import asyncio
import io

from assay import benchmark


@benchmark(iterations=30)
def join(count: int = 1000) -> None:
    "".join(["word"] * count)


@benchmark(iterations=30)
def write(count: int = 1000) -> None:
    text = io.StringIO()
    for _ in range(count):
        text.write("word")
    text.getvalue()


@benchmark(iterations=30)
async def gather(count: int = 100) -> dict[str, float]:
    async def word() -> str:
        return "word"

    words = await asyncio.gather(*(word() for _ in range(count)))
    return {"characters": len("".join(words))}


if __name__ == "__main__":
    for function in (join, write, gather):
        print(function())
