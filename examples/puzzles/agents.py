"""Three agents that differ in method: one tries everything, one grabs what looks best, one is moody."""

import random

from solvers import exact_change, exact_knapsack, exact_tour, greedy_change, greedy_knapsack, greedy_tour


def exact(text: str, **case: object) -> str:
    return _solved(case, exact_change, exact_knapsack, exact_tour)


def greedy(text: str, **case: object) -> str:
    return _solved(case, greedy_change, greedy_knapsack, greedy_tour)


def moody(text: str, **case: object) -> str:
    """Careful two times in three; its mood changes between repetitions, which reliability shows."""
    return exact(text, **case) if random.random() < 2 / 3 else greedy(text, **case)


def gloomy(text: str, **case: object) -> str:
    """A later version of `moody` that broods: it works everything out three times, and then often gives up."""
    thoughts = [exact(text, **case) for _ in range(3)]
    return thoughts[-1] if random.random() < 1 / 3 else "I give up."


def _solved(case, change, knapsack, tour) -> str:
    if "coins" in case:
        number = change(case["coins"], case["amount"])
    elif "items" in case:
        number = knapsack(case["items"], case["capacity"])
    else:
        number = tour(case["towns"])
    return f"I worked it out: the answer is {number}."
