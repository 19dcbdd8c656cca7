"""What loads send: prompts that no prompt cache has, or that share what they are to share, of the length that was asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from tests.command import AssayInline
from tests.load.faulty import (
    ANSWER,
    CHUNKED,
    DONE,
    END,
    FINISH,
    JSON,
    SSE,
    always,
    chunk,
    delta,
    event,
    faulty,
    head,
    with_length,
)
from tests.load.loading import load
from tests.load.results import result

from assay.analysis.load.judgement import judge_load
from assay.errors import SpecError
from assay.load.build import LoadOptions, build_prepared_load
from assay.load.payload import payloads_of
from assay.load.synthetic import BLOCK_TOKENS, Openings, SyntheticText
from assay.model.load import Arrivals, Load
from assay.model.load_document import load_document
from assay.simulator import SimOptions, SimServer

URL = "http://127.0.0.1:9/v1"


def bodies(url: str = URL, number: int = 300, salt: int = 7, **given: Any) -> list[Any]:
    """The bodies of so many requests, as a worker would send them."""
    asked = build_prepared_load(LoadOptions(url, **given))
    payload_of = payloads_of({**asked.order, "salt": salt, "rows": None, "workers": 1})
    requests = [payload_of(number) for number in range(number)]
    for request in requests:
        head, _, body = request.partition(b"\r\n\r\n")
        assert f"content-length: {len(body)}".encode() in head
    return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in requests]


def texts(*arguments: Any, **given: Any) -> list[str]:
    return [body["messages"][0]["content"] for body in bodies(*arguments, **given)]


def common(first: str, second: str) -> int:
    """Words that two texts have in common before the first that differs."""
    pairs = zip(first.split(), second.split(), strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), len(first.split()))


def test_no_two_of_many_openings_are_alike_and_neighbours_share_not_one_word() -> None:
    openings = Openings(3)
    made = [openings(number) for number in range(200_000)]
    assert len(set(made)) == len(made)
    assert {len(opening) for opening in made} == {20}
    first = [opening.split()[0] for opening in made[:256]]
    assert len(set(first)) == 256


def test_prompts_are_unique_from_the_first_words_on_unless_they_are_to_be_kept() -> None:
    prompt = "Tell me a story."
    sent = texts(prompt=prompt)
    assert all(text.endswith(f" {prompt}") for text in sent)
    assert len({text.split()[0] for text in sent}) == 256
    assert max(common(sent[0], text) for text in sent[1:]) <= 1
    assert set(texts(prompt=prompt, prompt_cache="keep")) == {prompt}


@pytest.mark.parametrize("lengths", [{}, {"input_tokens": "50..90"}, {"output_tokens": "5..9"}])
def test_the_same_seed_sends_the_same_and_another_load_something_else(lengths: dict[str, Any]) -> None:
    assert texts(salt=1, **lengths) == texts(salt=1, **lengths)
    assert not set(texts(salt=1, **lengths)) & set(texts(salt=2, **lengths))


def test_each_load_of_a_run_and_each_run_without_a_seed_sends_other_prompts() -> None:
    def sent(*options: LoadOptions) -> list[set[bytes]]:
        found = []
        for given in options:
            with faulty(always(ANSWER)) as server:
                asked = build_prepared_load(
                    LoadOptions(server.url, requests=4, prompt_seed=given.prompt_seed)
                )
                for load_number in range(2):
                    asked.measure()
                    found.append(
                        {one.partition(b"\r\n\r\n")[2] for one in server.requests[4 * load_number :]}
                    )
        return found

    first, second, again, _ = sent(LoadOptions(URL, prompt_seed=5), LoadOptions(URL, prompt_seed=5))
    assert first == again
    assert not first & second
    some, _, others, _ = sent(LoadOptions(URL), LoadOptions(URL))
    assert not some & others


@pytest.mark.parametrize("unique", [{}, {"input_tokens": "200"}, {"output_tokens": "9"}])
def test_a_shared_prefix_is_shared_and_nothing_after_it_is(unique: dict[str, Any]) -> None:
    sent = texts(shared_prefix=40, **unique)
    shared = [common(sent[0], text) for text in sent[1:]]
    assert min(shared) == 40
    assert max(shared) <= 41
    if "input_tokens" in unique:
        assert {len(text.split()) for text in sent} == {200}


def test_what_a_model_reads_first_is_what_differs() -> None:
    from assay.load.request import Target

    target = Target(f"{URL}/chat/completions", "openai", "m", system="Be short.")
    asked = build_prepared_load(LoadOptions(URL), target)
    payload_of = payloads_of({**asked.order, "salt": 1, "rows": None, "workers": 1})
    sent = [json.loads(payload_of(n).partition(b"\r\n\r\n")[2])["messages"] for n in range(50)]
    assert {messages[0]["role"] for messages in sent} == {"system"}
    assert len({messages[0]["content"].split()[0] for messages in sent}) == 50
    assert len({messages[1]["content"] for messages in sent}) == 1


def test_plain_http_and_the_cases_of_a_suite_are_sent_as_written(tmp_path: Path) -> None:
    with faulty(always(with_length(b"{}", JSON)), path="/other") as server:
        load(server.url, prompt="hello")
        assert {json.loads(one.partition(b"\r\n\r\n")[2])["input"] for one in server.requests} == {"hello"}


def test_synthetic_prompts_have_the_lengths_that_were_asked_for() -> None:
    sent = bodies(
        number=4096, input_tokens="500±100", output_tokens="100..300", ignore_eos=True, min_tokens=7
    )
    sizes = [len(body["messages"][0]["content"].split()) for body in sent]
    mean = sum(sizes) / len(sizes)
    deviation = (sum((size - mean) ** 2 for size in sizes) / len(sizes)) ** 0.5
    assert mean == pytest.approx(500, abs=8)
    assert deviation == pytest.approx(100, rel=0.1)
    bounds = [body["max_tokens"] for body in sent]
    assert (min(bounds), max(bounds)) == (100, 300)
    assert sum(bounds) / len(bounds) == pytest.approx(200, abs=5)
    assert {(body["ignore_eos"], body["min_tokens"]) for body in sent} == {(True, 7)}


def test_blocks_of_a_trace_share_their_text_and_nothing_else_does() -> None:
    text = SyntheticText(1)
    first, second, third = (
        text.prompt_of_blocks(number, blocks, 1300).decode()
        for number, blocks in enumerate(([1, 2, 3], [1, 2, 4], [5, 2, 3]))
    )
    assert {len(one.split()) for one in (first, second, third)} == {1300}
    assert common(first, second) in (2 * BLOCK_TOKENS, 2 * BLOCK_TOKENS + 1)
    assert common(first, third) <= 1


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"prompt_cache": "keep", "shared_prefix": 5}, "--shared-prefix"),
        ({"input_tokens": "5", "prompt": "x"}, "--input-tokens"),
        ({"output_tokens": "5", "max_tokens": 5}, "--output-tokens"),
        ({"input_tokens": "many"}, "--input-tokens"),
        ({"input_tokens": "700..500"}, "--input-tokens"),
        ({"input_tokens": "500±-1"}, "--input-tokens"),
        ({"input_tokens": "10", "shared_prefix": 20}, "--shared-prefix"),
        ({"min_tokens": 10, "max_tokens": 5}, "--min-tokens"),
        ({"min_tokens": 10, "output_tokens": "5"}, "--min-tokens"),
        ({"tokenizer": "none.json"}, "--tokenizer"),
    ],
)
def test_options_that_contradict_each_other_are_refused(given: dict[str, Any], option: str) -> None:
    with pytest.raises(SpecError) as refused:
        build_prepared_load(LoadOptions(URL, **given))
    assert refused.value.mistakes[0].file == option


def test_only_servers_that_know_it_are_told_to_ignore_the_end() -> None:
    with pytest.raises(SpecError):
        build_prepared_load(LoadOptions("http://127.0.0.1:9/api/chat", ignore_eos=True))


# A server with a prompt cache: 4 ms for each token that it has not read before, and 20 ms for anything.
PREFILL, TTFT, WORDS = 0.004, 0.02, 60
UNCACHED = TTFT + PREFILL * (WORDS + 4)


@pytest.mark.parametrize("dialect", ["/v1", "/v1/messages", "/api/chat"])
def test_the_time_to_the_first_token_is_that_of_reading_the_prompt_not_of_a_cache(dialect: str) -> None:
    truth = SimOptions(ttft=TTFT, itl=0.0, tokens=3, prefill=PREFILL, prompt_cache=True)
    # No word that an opening may begin with.
    prompt = " ".join(["again"] * WORDS)
    with SimServer(truth, in_thread=True) as server:
        url = server.url + dialect
        unique = load(url, prompt=prompt, requests=6)
        kept = load(url, prompt=prompt, requests=6, prompt_cache="keep")

    assert unique.times["ttft"].p50 == pytest.approx(UNCACHED, abs=0.06)
    assert kept.times["ttft"].p50 < 0.12
    assert unique.input_tokens == 6 * (WORDS + 4)
    if dialect != "/api/chat":  # Ollama does not tell what it had cached.
        assert (unique.cached_tokens, kept.cached_tokens) == (0, 5 * (WORDS - 1))
        assert not [warning for warning in unique.warnings if "prompt cache" in warning]
        assert [warning for warning in kept.warnings if "prompt cache" in warning]


def test_a_shared_prefix_is_cached_and_the_rest_is_not() -> None:
    with SimServer(SimOptions(ttft=0.0, itl=0.0, prompt_cache=True), in_thread=True) as server:
        found = load(server.url + "/v1", shared_prefix=80, input_tokens="100", requests=21)
    assert found.input_tokens == 2100
    assert 80 * 20 <= (found.cached_tokens or 0) <= 82 * 20
    assert load_document(found)["cached_share"] == pytest.approx(0.76, abs=0.02)


def stream(usage: dict[str, object], **more: object) -> bytes:
    events = [delta(content="hi"), FINISH, event({"choices": [], "usage": usage, **more}), DONE]
    return head(SSE, CHUNKED) + b"".join(chunk(one) for one in events) + END


@pytest.mark.parametrize(
    ("answer", "given", "cached"),
    [
        (stream({"prompt_tokens": 90, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 89}}), 90, 89),
        (stream({"prompt_tokens": 90, "completion_tokens": 4}, timings={"cache_n": 17, "prompt_n": 73}), 90, 17),
        (stream({"prompt_tokens": 90, "completion_tokens": 4, "prompt_cache_hit_tokens": 64}), 90, 64),
        (stream({"prompt_tokens": 90, "completion_tokens": 4}), 90, 0),
        # What llama.cpp calls tokens_cached is what its cache holds afterwards.
        (stream({"prompt_tokens": 90, "completion_tokens": 4}, tokens_cached=94), 90, 0),
    ],
)  # fmt: skip
def test_cached_tokens_are_read_as_servers_tell_them(answer: bytes, given: int, cached: int) -> None:
    with faulty(always(answer)) as server:
        found = load(server.url, requests=3)
    assert (found.input_tokens, found.cached_tokens) == (3 * given, 3 * cached)


def test_mostly_cached_input_is_a_remark_and_not_a_doubt() -> None:
    load = Load(Arrivals.CONSTANT, stages=((10, 100, 100),))
    found = judge_load(result(input_tokens=1000, cached_tokens=510, counted_requests=1), load)
    assert found.is_valid
    assert len(found.warnings) == 1
    assert not judge_load(result(input_tokens=1000, cached_tokens=500, counted_requests=1), load).warnings
    # A chat template begins all prompts alike, however unique they are.
    template = result(input_tokens=430, cached_tokens=240, counted_requests=10, prompt_seed=1)
    assert not judge_load(template, load).warnings
    assert judge_load(replace(template, prompt_seed=None), load).warnings


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        (b'{"rows": [{"output_tokens": 182514628, "input_tokens": 5}]}', None),
        (b'{"output_tokens": 5, "input_tokens": 5}', None),
        (b'{"output": "x", "usage": {"output_tokens": 4, "input_tokens": 9}}', 9),
        (b'{"output": "x", "usage": {"output_tokens": 182514628182, "input_tokens": 99999999999}}', None),
        (b'{"usage": "output_tokens"}', None),
    ],
)
def test_over_plain_http_only_a_usage_object_with_plausible_numbers_counts(
    body: bytes, tokens: int | None
) -> None:
    with faulty(always(with_length(body, JSON)), path="/page") as server:
        found = load(server.url, requests=4)
    assert found.input_tokens == (None if tokens is None else 4 * tokens)
    assert (found.output_tokens.value > 0) == (tokens is not None)


def tokenizer_of_few_words(file: Path) -> Any:
    """Letters are tokens, and so are 18 words that begin alike; no common word is."""
    tokenizers = pytest.importorskip("tokenizers")
    ends = "defghijklmnopqrstu"
    merges = [("a", "b"), ("ab", "c"), *(("abc", end) for end in ends)]
    pieces = ["[UNK]", *"abcdefghijklmnopqrstuvwxyz", *("".join(pair) for pair in merges)]
    made = tokenizers.Tokenizer(tokenizers.models.BPE({piece: n for n, piece in enumerate(pieces)}, merges))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(file))
    return made


def test_with_a_tokenizer_prompts_have_exactly_so_many_tokens(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    tokenizer = tokenizer_of_few_words(file)
    with_it = texts(number=40, input_tokens="20..60", tokenizer=str(file))
    without = texts(number=40, input_tokens="20..60")
    sizes = [len(tokenizer.encode(text).ids) for text in with_it]
    assert sizes == [len(text.split()) for text in without]
    assert all(len(tokenizer.encode(text).ids) > 3 * len(text.split()) for text in without)


def test_trials_of_a_run_do_not_meet_each_others_prompts_in_the_cache(assay_inline: AssayInline) -> None:
    settings = ("requests=4", "prompt_seed=7")
    with SimServer(SimOptions(ttft=0.0, itl=0.0, prompt_cache=True), in_thread=True) as server:
        words = [word for text in (*settings, f"target={server.url}/v1") for word in ("--set", text)]
        sweep = ("--sweep", "input_tokens=50,100", "--repetitions", "2")
        assert assay_inline("run", "load", *words, *sweep, "--json").json["status"] == "completed"
        first = stats_of(server.url)
        assert assay_inline("run", "load", *words, *sweep, "--json").json["status"] == "completed"
        second = stats_of(server.url)
    assert first["input_tokens"] == 2 * 4 * (50 + 100)
    # By chance two prompts may begin with the same word.
    assert first["cached_tokens"] <= 4
    # The same seed sends the same again, which the server has now.
    assert second["cached_tokens"] - first["cached_tokens"] >= 0.9 * first["input_tokens"]


def stats_of(url: str) -> Any:
    with urlopen(f"{url}/stats") as answer:
        return json.load(answer)
