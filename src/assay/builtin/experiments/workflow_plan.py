"""A workflow plan: shell commands with their dependencies, inputs and outputs, read from what a model wrote.

A plan is checked whole before its first command runs. What is wrong with one is a `PlanFault` with a code: a report counts
faults by their code, and shows the message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from assay.builtin.scorers.code_blocks import json_values

MOST_STEPS = 100
_MOST_COMMAND = 20_000
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


class PlanFault(ValueError):
    """A plan that cannot be executed. `code` is one of `FAULTS`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


FAULTS = {
    "not_json": "the answer contains no JSON",
    "no_steps": "the JSON has no list of steps",
    "empty": "the plan has no steps",
    "too_long": f"the plan has more than {MOST_STEPS} steps",
    "bad_step": "a step has no name or no command, or a field has the wrong type",
    "same_name": "two steps have the same name",
    "unknown_step": "a step depends on one that does not exist",
    "cycle": "steps depend on each other in a cycle",
    "outside": "a step names a file outside of the working folder",
}


@dataclass(frozen=True, slots=True)
class WorkflowStep:
    """One command of a workflow. Paths are relative to the working folder."""

    name: str
    command: str
    depends_on: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkflowPlan:
    """Steps in an order in which each comes after all it depends on."""

    steps: tuple[WorkflowStep, ...]

    def document(self) -> list[dict[str, Any]]:
        """Return the plan as the document that a model would write."""
        return [
            {
                "name": step.name,
                "command": step.command,
                "depends_on": list(step.depends_on),
                "inputs": list(step.inputs),
                "outputs": list(step.outputs),
            }
            for step in self.steps
        ]


def read_plan(output: object) -> WorkflowPlan:
    """The plan in an answer: JSON, also within a text or a code block; PlanFault for anything else."""
    found = _find_json(output) if isinstance(output, str) else output
    if found is None:
        raise PlanFault(
            "not_json", f"The answer is not a plan: it contains no JSON. It begins: {_begin(output)}"
        )
    steps = found.get("steps") if isinstance(found, Mapping) else found
    if not isinstance(steps, Sequence) or isinstance(steps, str):
        raise PlanFault("no_steps", "The answer is not a plan: it has no list 'steps'.")
    if not steps:
        raise PlanFault("empty", "The plan has no steps.")
    if len(steps) > MOST_STEPS:
        raise PlanFault("too_long", f"The plan has {len(steps)} steps; at most {MOST_STEPS} are allowed.")
    return sort_steps([_read_step(step, number) for number, step in enumerate(steps, 1)])


def sort_steps(steps: Sequence[WorkflowStep]) -> WorkflowPlan:
    """Sort steps in topological order, otherwise as written (Kahn's algorithm); raise PlanFault if there is a cycle."""
    names = [step.name for step in steps]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise PlanFault("same_name", f"Two steps are called '{twice}'.")
    for step in steps:
        for wanted in step.depends_on:
            if wanted not in names:
                raise PlanFault(
                    "unknown_step", f"Step '{step.name}' depends on '{wanted}', which does not exist."
                )
    ordered: list[WorkflowStep] = []
    waiting, ready = list(steps), set[str]()
    while waiting:
        following = next((step for step in waiting if ready.issuperset(step.depends_on)), None)
        if following is None:
            circle = ", ".join(f"'{step.name}'" for step in waiting)
            raise PlanFault("cycle", f"Steps depend on each other in a cycle: {circle}.")
        waiting.remove(following)
        ready.add(following.name)
        ordered.append(following)
    return WorkflowPlan(tuple(ordered))


def _read_step(written: object, number: int) -> WorkflowStep:
    if not isinstance(written, Mapping):
        raise PlanFault("bad_step", f"Step {number} is not an object with a name and a command.")
    name, command = written.get("name", written.get("id")), written.get("command")
    if not isinstance(command, str) or not command.strip() or len(command) > _MOST_COMMAND:
        raise PlanFault(
            "bad_step", f"Step {number}: 'command' must be text of at most {_MOST_COMMAND:,} characters."
        )
    name = str(name) if name is not None else f"step {number}"
    needs = _texts(written, number, "depends_on", "dependencies")
    inputs, outputs = _texts(written, number, "inputs"), _texts(written, number, "outputs")
    for path in (*inputs, *outputs):
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise PlanFault(
                "outside", f"Step '{name}' names '{path}', which is outside of the working folder."
            )
    return WorkflowStep(name, command, needs, inputs, outputs)


def _texts(written: Mapping[str, Any], number: int, *names: str) -> tuple[str, ...]:
    found = next((written[name] for name in names if written.get(name) is not None), ())
    texts = [found] if isinstance(found, str) else found
    if not isinstance(texts, Sequence):
        raise PlanFault("bad_step", f"Step {number}: '{names[0]}' must be a list of strings.")
    return tuple(str(text) for text in texts)


def _find_json(text: str) -> Any:
    """The first JSON object or list in a text that models wrap it in; None where there is none."""
    parts = (*_FENCE.findall(text), text)
    return next((value for part in parts for value in json_values(part)), None)


def _begin(output: object) -> str:
    text = " ".join(str(output).split())
    return f"“{text[:80]}…”" if len(text) > 80 else f"“{text}”"
