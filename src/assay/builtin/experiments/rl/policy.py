"""A small autoregressive policy in NumPy: token embeddings, one hidden layer, a softmax over the next token, and a value head.

All parameters lie in one vector, so that an optimizer, a copy and a finite difference are one line each. Gradients are
written out by hand; `tests/rl/test_gradients.py` holds them against finite differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EMBEDDING, HIDDEN = 16, 64
_SMALL = 0.1
"""Scale of the first output weights: an untrained policy is close to uniform."""


@dataclass(frozen=True, slots=True)
class Activations:
    """What a pass over rows of contexts leaves for its gradient."""

    contexts: Ints
    inputs: Floats
    hidden: Floats
    logp: Floats
    """Log-probabilities of every token; rows × tokens."""
    values: Floats
    """What the value head expects of the rest of the sequence."""


class Policy:
    """P(token | context). A context is a row of token ids of fixed width: the prompt, then what was said, then padding."""

    def __init__(self, tokens: int, width: int, chance: np.random.Generator) -> None:
        self._shapes = {
            "embedding": (tokens + 1, EMBEDDING),
            "hidden": (width * EMBEDDING, HIDDEN),
            "bias": (HIDDEN,),
            "output": (HIDDEN, tokens),
            "output_bias": (tokens,),
            "value": (HIDDEN,),
            "value_bias": (1,),
        }
        scales = {"embedding": 1.0, "hidden": (width * EMBEDDING) ** -0.5, "output": _SMALL * HIDDEN**-0.5}
        self.vector = np.concatenate(
            [chance.normal(0.0, scales.get(name, 0.0), prod(shape)) for name, shape in self._shapes.items()]
        )

    def copy(self) -> Policy:
        twin = object.__new__(Policy)
        twin._shapes, twin.vector = self._shapes, self.vector.copy()
        return twin

    def _split(self, vector: Floats) -> Mapping[str, Floats]:
        """Views on a vector, by the name of the part."""
        parts, start = {}, 0
        for name, shape in self._shapes.items():
            parts[name] = vector[start : start + prod(shape)].reshape(shape)
            start += prod(shape)
        return parts

    def forward(self, contexts: Ints) -> Activations:
        part = self._split(self.vector)
        inputs = part["embedding"][contexts].reshape(len(contexts), -1)
        hidden = np.tanh(inputs @ part["hidden"] + part["bias"])
        logits = hidden @ part["output"] + part["output_bias"]
        logits -= logits.max(axis=1, keepdims=True)
        logp = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return Activations(contexts, inputs, hidden, logp, hidden @ part["value"] + part["value_bias"][0])

    def backward(
        self, activations: Activations, tokens: Ints, by_logp: Floats, by_value: Floats | None = None
    ) -> Floats:
        """The gradient of a loss, from its derivatives by the log-probability of each row's token and by each row's value."""
        part, gradient = self._split(self.vector), np.zeros_like(self.vector)
        into = self._split(gradient)
        by_logits = -np.exp(activations.logp) * by_logp[:, None]
        by_logits[np.arange(len(tokens)), tokens] += by_logp
        by_hidden = by_logits @ part["output"].T
        into["output"][:] = activations.hidden.T @ by_logits
        into["output_bias"][:] = by_logits.sum(axis=0)
        if by_value is not None:
            by_hidden += np.outer(by_value, part["value"])
            into["value"][:] = activations.hidden.T @ by_value
            into["value_bias"][:] = by_value.sum()
        by_sum = by_hidden * (1.0 - activations.hidden**2)
        into["hidden"][:] = activations.inputs.T @ by_sum
        into["bias"][:] = by_sum.sum(axis=0)
        by_inputs = (by_sum @ part["hidden"].T).reshape(*activations.contexts.shape, EMBEDDING)
        np.add.at(into["embedding"], activations.contexts, by_inputs)
        return gradient


class Adam:
    """Kingma and Ba (2015), algorithm 1, with their defaults; the norm of a gradient is cut to 1 first (Pascanu et al. 2013)."""

    def __init__(self, rate: float) -> None:
        self._rate, self._step = rate, 0
        self._mean: Floats | float = 0.0
        self._square: Floats | float = 0.0

    def descend(self, vector: Floats, gradient: Floats) -> None:
        """Change the vector in place."""
        gradient = gradient / max(1.0, float(np.linalg.norm(gradient)))
        self._step += 1
        self._mean = 0.9 * self._mean + 0.1 * gradient
        self._square = 0.999 * self._square + 0.001 * gradient**2
        mean = self._mean / (1 - 0.9**self._step)
        square = self._square / (1 - 0.999**self._step)
        vector -= self._rate * mean / (np.sqrt(square) + 1e-8)
