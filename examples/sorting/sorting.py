"""Three sorting algorithms on the same lists."""

import random
from typing import Literal

from pydantic import BaseModel, Field

from assay import Experiment, ExperimentContext, register_experiment


def merge_sort(items: list[float]) -> list[float]:
    if len(items) < 2:
        return items
    middle = len(items) // 2
    left, right = merge_sort(items[:middle]), merge_sort(items[middle:])
    merged = []
    while left and right:
        merged.append(left.pop() if left[-1] > right[-1] else right.pop())
    return left + right + merged[::-1]


def insertion_sort(items: list[float]) -> list[float]:
    result: list[float] = []
    for item in items:
        place = len(result)
        while place and result[place - 1] > item:
            place -= 1
        result.insert(place, item)
    return result


ALGORITHMS = {"builtin": sorted, "merge": merge_sort, "insertion": insertion_sort}


@register_experiment("sorting")
class Sorting(Experiment):
    """Sort a list of random numbers; the same list for every algorithm, by the seed of the run."""

    class Params(BaseModel):
        algorithm: Literal["builtin", "merge", "insertion"] = "builtin"
        size: int = Field(1000, ge=1)

    def setup(self, context: ExperimentContext) -> None:
        self.sort = ALGORITHMS[self.params.algorithm]
        self.items = [random.random() for _ in range(self.params.size)]
        context.read_back(algorithm=self.params.algorithm)

    def execute_once(self, context: ExperimentContext) -> dict[str, float]:
        self.sort(list(self.items))
        return {"items": self.params.size}
