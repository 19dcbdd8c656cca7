"""Writes the cases: puzzles whose best answer is known, because they are small enough to try everything."""

import itertools
import json
import random
from pathlib import Path

from solvers import exact_change, exact_knapsack, exact_tour

HERE = Path(__file__).parent
COINS = ([1, 5, 10, 25], [1, 3, 4], [1, 7, 10], [1, 6, 9, 20], [1, 12, 15])


def change(chance: random.Random) -> dict:
    coins, amount = chance.choice(COINS), chance.randint(11, 99)
    text = f"Coins of {', '.join(map(str, coins))} are to hand. What is the least number of coins that makes {amount}?"
    return {"input": text, "expected": exact_change(coins, amount), "coins": coins, "amount": amount}


def knapsack(chance: random.Random) -> dict:
    items = [[chance.randint(2, 12), chance.randint(5, 40)] for _ in range(chance.randint(6, 10))]
    capacity = sum(weight for weight, _ in items) // 2
    listed = "; ".join(f"{weight} kg worth {value}" for weight, value in items)
    text = f"Items: {listed}. A bag holds {capacity} kg. What is the highest worth that it can carry?"
    return {"input": text, "expected": exact_knapsack(items, capacity), "items": items, "capacity": capacity}


def tour(chance: random.Random) -> dict:
    towns = [[chance.randint(0, 99), chance.randint(0, 99)] for _ in range(chance.randint(5, 7))]
    text = f"Towns at {towns}. How long is the shortest round trip, rounded to a whole number?"
    return {"input": text, "expected": exact_tour(towns), "towns": towns, "tags": ["geometry"]}


def main() -> None:
    for make, count in ((change, 40), (knapsack, 40), (tour, 30)):
        chance = random.Random(make.__name__)
        cases = [{"id": f"{make.__name__}-{n:02}", **make(chance)} for n in range(count)]
        lines = (json.dumps(case) + "\n" for case in itertools.islice(cases, count))
        (HERE / f"{make.__name__}.jsonl").write_text("".join(lines))


if __name__ == "__main__":
    main()
