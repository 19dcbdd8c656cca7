"""Ways to solve the puzzles: by trying everything, and by grabbing what looks best."""

from functools import cache
from itertools import permutations
from math import dist


def exact_change(coins: list[int], amount: int) -> int:
    @cache
    def fewest(rest: int) -> int:
        return 0 if rest == 0 else 1 + min(fewest(rest - coin) for coin in coins if coin <= rest)

    return fewest(amount)


def greedy_change(coins: list[int], amount: int) -> int:
    count = 0
    for coin in sorted(coins, reverse=True):
        count += amount // coin
        amount %= coin
    return count


def exact_knapsack(items: list[list[int]], capacity: int) -> int:
    best = [0] * (capacity + 1)
    for weight, value in items:
        for room in range(capacity, weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + value)
    return best[capacity]


def greedy_knapsack(items: list[list[int]], capacity: int) -> int:
    worth = 0
    for weight, value in sorted(items, key=lambda item: item[1] / item[0], reverse=True):
        if weight <= capacity:
            capacity -= weight
            worth += value
    return worth


def length(towns: list[list[int]]) -> float:
    return sum(dist(a, b) for a, b in zip(towns, [*towns[1:], towns[0]], strict=True))


def exact_tour(towns: list[list[int]]) -> int:
    first, *others = towns
    return round(min(length([first, *order]) for order in permutations(others)))


def greedy_tour(towns: list[list[int]]) -> int:
    here, *left = towns
    order = [here]
    while left:
        here = min(left, key=lambda town: dist(here, town))
        left.remove(here)
        order.append(here)
    return round(length(order))
