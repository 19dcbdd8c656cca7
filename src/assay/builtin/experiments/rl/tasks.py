"""The two tasks: sums of two digits, and conversations with customers; each has a reward that can be checked.

A task is a list of prompts, a vocabulary, and a reward from 0 to 1 for the tokens that a policy answers a prompt with. Every
backend trains on the same task, token by token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class Task(Protocol):
    """What a policy is trained on. Token ids are places in the vocabulary."""

    @property
    def name(self) -> str: ...

    @property
    def vocabulary(self) -> tuple[str, ...]: ...

    @property
    def prompts(self) -> tuple[tuple[int, ...], ...]:
        """The prompts, all of the same length."""
        ...

    @property
    def end(self) -> int:
        """The token that ends an answer."""
        ...

    @property
    def most_tokens(self) -> int:
        """The longest answer."""
        ...

    def reward(self, prompt: Sequence[int], answer: Sequence[int]) -> float:
        """Return the reward from 0 to 1 of the tokens up to and including `end`, or of `most_tokens` without it."""
        ...

    def describe(self, prompt: Sequence[int], answer: Sequence[int]) -> list[str]:
        """The exchange as lines for people."""
        ...


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """a + b for digits up to 2. The reward is 0.2 for a number and its end, 0.3 for how close it is, 0.5 for the right one."""

    name: str = "arithmetic"
    vocabulary: tuple[str, ...] = (*"01234", "+", "<end>")
    prompts: tuple[tuple[int, ...], ...] = tuple((a, 5, b) for a in range(3) for b in range(3))
    end: int = 6
    most_tokens: int = 3

    def reward(self, prompt: Sequence[int], answer: Sequence[int]) -> float:
        digits, right = answer[:-1], prompt[0] + prompt[2]
        if answer[-1] != self.end or not 1 <= len(digits) <= 2 or max(digits) > 4:
            return 0.0
        given = int("".join(map(str, digits)))
        closeness = max(0.0, 1 - abs(given - right) / 4)
        return 0.2 + 0.3 * closeness + 0.5 * (given == right)

    def describe(self, prompt: Sequence[int], answer: Sequence[int]) -> list[str]:
        words = [self.vocabulary[token] for token in (*prompt, *answer)]
        return ["".join(words[: len(prompt)]) + " = " + " ".join(words[len(prompt) :])]


SCENARIOS: Mapping[str, tuple[str, str, str]] = {
    "refund": ("I want my money back.", "ask_order", "issue_refund"),
    "shipping": ("Where is my parcel?", "ask_order", "promise_date"),
    "support": ("It does not switch on.", "ask_order", "send_replacement"),
    "billing": ("I was charged twice.", "ask_account", "correct_charge"),
    "cancellation": ("I want to cancel.", "ask_account", "confirm_cancellation"),
}
"""For each scenario, what the customer says first, and the phrases that ask and resolve."""
PHRASES: Mapping[str, tuple[str, str]] = {
    "greet": ("Hello, thank you for contacting us.", "Hello."),
    "ask_order": ("What is your order number?", "It is 1042."),
    "ask_account": ("Which account is it?", "It is in my name."),
    "look_up": ("Thank you, I have looked it up.", "And?"),
    "issue_refund": ("I have issued your refund.", "Thank you."),
    "promise_date": ("It will arrive on Thursday.", "Thank you."),
    "send_replacement": ("I am sending you a new one.", "Thank you."),
    "correct_charge": ("I have reversed the charge.", "Thank you."),
    "confirm_cancellation": ("Your contract is cancelled.", "Thank you."),
    "blame": ("You must have done something wrong.", "Excuse me?"),
    "close": ("Have a good day.", ""),
}
"""What an agent may say, as a token, in words, and what the customer answers."""
RUBRIC = {
    "greeting": 0.1,
    "question": 0.2,
    "preparation": 0.2,
    "resolution": 0.3,
    "closing": 0.1,
    "tact": 0.1,
}


@dataclass(frozen=True, slots=True)
class CustomerService:
    """Five scenarios of up to six turns; a token is a phrase. RUBRIC has the points, and `reward` how they are won."""

    name: str = "customer_service"
    vocabulary: tuple[str, ...] = (*PHRASES, *SCENARIOS)
    prompts: tuple[tuple[int, ...], ...] = tuple((len(PHRASES) + place,) for place in range(len(SCENARIOS)))
    end: int = len(PHRASES) - 1
    most_tokens: int = 6

    def reward(self, prompt: Sequence[int], answer: Sequence[int]) -> float:
        return round(sum(RUBRIC[item] for item in self.judge(prompt, answer)), 9)

    def judge(self, prompt: Sequence[int], answer: Sequence[int]) -> list[str]:
        """The items of the rubric that a conversation meets.

        The question, the preparation and the resolution count in this order only: who resolves before asking guesses.
        Tact is to say only what the scenario needs, each once, and to have resolved it.
        """
        words = [self.vocabulary[token] for token in answer]
        question, resolution = SCENARIOS[self.vocabulary[prompt[0]]][1:]
        steps = (question, "look_up", resolution)
        met, place = ["greeting"] if words[0] == "greet" else [], -1
        for item, step in zip(("question", "preparation", "resolution"), steps, strict=True):
            if step not in words[place + 1 :]:
                break
            place = words.index(step, place + 1)
            met.append(item)
        if answer[-1] == self.end:
            met.append("closing")
        if "resolution" in met and len(set(words)) == len(words) and set(words) <= {"greet", "close", *steps}:
            met.append("tact")
        return met

    def describe(self, prompt: Sequence[int], answer: Sequence[int]) -> list[str]:
        lines = [f"Customer: {SCENARIOS[self.vocabulary[prompt[0]]][0]}"]
        for token in answer:
            name = self.vocabulary[token]
            words, reply = PHRASES.get(name, (f"<{name}>", "What?"))
            lines += [f"Agent: {words}", *([f"Customer: {reply}"] if reply else ())]
        return lines


TASKS: Mapping[str, Task] = {task.name: task for task in (Arithmetic(), CustomerService())}
