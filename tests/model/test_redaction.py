"""Secrets removed from whatever is kept or shown, by value and by shape."""

from __future__ import annotations

import base64
import html
import json
import string
from time import process_time
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.model.redaction import Redaction
from assay.model.secret import REDACTED, plain_secrets

KEY = 'hunter2/and "more"+é'
SHAPED = [
    "sk-1234567890abcdef1234",
    "sk-proj-AbC-dEf_1234567890-xyzXYZ",
    "sk-ant-api03-4fJ7dK2m-Q9xW1zR8_aa",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "gho_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "xoxb-123456789012-abcdefABCDEF",
    "AKIAIOSFODNN7ABCDEFG",
    "ASIAIOSFODNN7ABCDEFG",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "glpat-abcdefghij0123456789",
    "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "pypi-AgEIcHlwaS5vcmcCJDEyMzQ1",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nx7K\n-----END RSA PRIVATE KEY-----",
]
ORDINARY = [
    "sk-learn-based-classification-of-documents",
    "the risk-adjusted disk-usage of task-12345",
    "Bearer authentication is required; send Authorization: Basic or Digest",
    "https://example.com/search?q=monkey&page=2",
    "postgresql://user@host/db and http://host:8080/a@b",
    "Bearer ${WEB_TOKEN}",
    "http://me:${PASSWORD}@host/v1?key=${KEY}",
    "postgresql://me:***@host/db",
    "xoxo, max_tokens=4096; AKIAIOSFODNN7EXAMPLE",
    "npm_config_registry and hf_hub and -----BEGIN CERTIFICATE-----",
    "https://example.com/?author=shakespeare&keywords=benchmark+agents&token_type=informal-article",
    "a = 1;password_hash=sha256(x) and f(b&key_length=12345678)",
    "headers = {'Authorization': request.headers.authorization, 'api-key': settings.api_key_of_provider}",
    "authorization = authorizationService.getCurrent1(); api-key: your-api-key-goes-here",
]

UNESCAPED = frozenset(string.ascii_letters + string.digits + "_.-")

plain_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
secrets = st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=40).map(
    lambda text: text + "7#"
)


@pytest.mark.parametrize("secret", SHAPED)
def test_a_key_of_a_known_shape_is_removed_wherever_it_stands(secret: str) -> None:
    for text in (secret, f"key={secret}", f"the key\n{secret}\nis wrong", json.dumps({"k": f"a\n{secret}"})):
        cleaned = Redaction().redact_text(text)
        assert secret not in cleaned
        assert secret[12:-26] == "" or secret[12:-26] not in cleaned
        assert REDACTED in cleaned
    assert Redaction().redact({secret: [secret]}) == {REDACTED: [REDACTED]}


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert Redaction([KEY]).redact(text) is text


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer a1b2c3d4e5",
        "authorization=Basic dXNlcjpodW50ZXI=",
        '{"x-api-key": "abcd1234efgh"}',
        "postgresql://me:pw@host/db",
        "GET /v1?api_key=abcd1234&page=2",
        "Cookie: session=abcd1234; theme=dark",
    ],
)
def test_what_authenticates_a_request_is_removed_and_the_rest_stays(text: str) -> None:
    cleaned = Redaction().redact_text(text)
    assert REDACTED in cleaned
    assert not any(word in cleaned for word in ("a1b2", "dXNl", "abcd1234", ":pw@"))
    assert cleaned.split(REDACTED)[0] == text[: len(cleaned.split(REDACTED)[0])]


@given(secret=secrets, before=st.text(max_size=5), after=st.text(max_size=5))
@settings(deadline=None)
def test_no_form_of_a_known_secret_is_left(secret: str, before: str, after: str) -> None:
    redact = Redaction([secret]).redact_text
    secret = secret.strip()
    forms = [secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret, safe=""), quote_plus(secret)]
    forms += [
        json.dumps(json.dumps(secret))[3:-3],
        html.escape(secret),
        secret.encode().hex(),
        secret.encode().hex().upper(),
        quote(quote(secret, safe=""), safe=""),
        repr(secret.encode())[2:-1],
        "".join(sign if sign in UNESCAPED else f"&#{ord(sign)};" for sign in secret),
        f"Bearer {secret}",
    ]
    for form in forms:
        assert form not in redact(f"{before}|{form}|{after}").replace(REDACTED, "")
    around = f"{before}{secret}{after}".encode("utf-8", "replace")
    assert redact(base64.b64encode(around).decode()).count(REDACTED) >= 1


@pytest.mark.parametrize(
    "sign", ["\\u002B", "\\u002b", "\\\\u002B", "&#43;", "&#x2B;", "&amp;#43;", "%2B", "%2b", "%252B"]
)
def test_signs_of_a_secret_may_be_written_in_any_way(sign: str) -> None:
    assert Redaction(["hunter2+more"]).redact_text(f"a hunter2{sign}more b") == f"a {REDACTED} b"


@given(value=plain_data, known=st.lists(secrets, max_size=3))
@settings(deadline=None)
def test_to_redact_twice_is_to_redact_once(value: Any, known: list[str]) -> None:
    redaction = Redaction(known)
    planted = {"a": value, "b": [f"x{secret}y" for secret in known], **dict.fromkeys(known, value)}
    once = redaction.redact(planted)
    assert redaction.redact(once) == once
    assert json.loads(redaction.redact_json(json.dumps(planted))) == json.loads(json.dumps(once))


@given(value=plain_data)
@settings(deadline=None)
def test_data_without_secrets_stays_the_same_object(value: Any) -> None:
    assert Redaction([KEY]).redact(value) is value


def test_two_keys_that_are_secrets_stay_two_entries() -> None:
    first, second = SHAPED[0], SHAPED[3]
    cleaned = Redaction().redact({first: 1, second: 2, REDACTED: 3})
    assert sorted(cleaned.values()) == [1, 2, 3]
    assert Redaction().redact(cleaned) == cleaned


def test_short_and_plain_values_of_the_environment_are_no_secrets() -> None:
    redaction = Redaction()
    redaction.learn_environment(
        {"AUTH": "true", "API_KEY": "1", "TOKEN_MODE": "disabled", "PWD": "/srv/app/v1"}
    )
    assert redaction.redact({"true": [1, "1", "disabled", "/srv/app/v1"]}) == {
        "true": [1, "1", "disabled", "/srv/app/v1"]
    }


def test_variables_that_name_an_address_or_a_model_are_shown() -> None:
    known = {
        "OPENAI_BASE_URL": "http://127.0.0.1:9000/v1",
        "MODEL": "gpt-4o-mini",
        "WEB_LOGIN": "ann:pa55word",
    }
    redaction = Redaction()
    redaction.learn_variables({"url": "${OPENAI_BASE_URL}", "m": "${MODEL}", "w": ["x ${WEB_LOGIN}"]}, known)
    assert redaction.redact(list(known.values())) == ["http://127.0.0.1:9000/v1", "gpt-4o-mini", REDACTED]


def test_a_secret_at_the_cut_of_an_excerpt_is_removed() -> None:
    redact = Redaction(["hunter2-is-my-password"]).redact_text
    assert redact("said hunter2-is-my…") == f"said {REDACTED}…"
    assert redact("…is-my-password it said") == f"…{REDACTED} it said"
    assert redact("to be continued…") == "to be continued…"


def test_the_origin_of_a_known_secret_can_be_told() -> None:
    redaction = Redaction()
    redaction.learn_environment({"DB_URL": "postgresql://me:s3cret-pw@host/db", "MY_KEY": "k3y-k3y-k3y"})
    assert redaction.origin_of_secret_in("it is s3cret-pw!") == "DB_URL"
    assert redaction.origin_of_secret_in("nothing") is None


@pytest.mark.parametrize(
    "words",
    [
        ["./agent", "--api-key", "clear-text-1"],
        ["./agent", "--api-key=clear-text-1"],
        ["env", "MY_KEY=clear-text-1", "./agent"],
        ["assay", "--set", "gpt.api_key=clear-text-1"],
        ["curl", "-H", "Authorization: Bearer clear-text-1"],
        ["./agent", SHAPED[0]],
    ],
)
def test_keys_that_are_written_out_in_a_command_are_found(words: list[str]) -> None:
    ((key, index),) = plain_secrets({"command": words})
    assert (key, words[int(index)] != "./agent") == ("command", True)
    redaction = Redaction()
    redaction.learn_command(words)
    assert "clear-text-1" not in str(redaction.redact(words))


def test_ordinary_arguments_of_a_command_are_accepted() -> None:
    words = [
        "./agent",
        "--max-tokens",
        "4096",
        "--keyword=refunds",
        "--key",
        "id",
        "-v",
        "--token",
        "${TOKEN}",
    ]
    assert (
        plain_secrets({"command": [*words, "--api-key=${KEY}", "LOG=debug", "host: example", "--seed=12345"]})
        == []
    )


@pytest.mark.parametrize(
    "part",
    ["sk-", "sk-ant-", "sk-aaaa-", "pypi-", "eyJ-", "authorization:", "bearer ", "cookie:a", "?key", "&", "://a:", "…", " ",
     "\\", "-----BEGIN PRIVATE KEY-----", "api-key=", "ghp_", "/", '"', "[", "AKIA", "xoxb-"],
)  # fmt: skip
def test_no_text_makes_the_search_slow(part: str) -> None:
    redaction = Redaction(['/quote"d/and/sl4shed', "hunter2-hunter2"])
    text = "… " + part * (200_000 // len(part))
    started = process_time()
    redaction.redact_text(text)
    assert process_time() - started < 5  # A search that tries every place from every place takes hours.


def test_data_that_is_nested_deeply_is_redacted_all_the_same() -> None:
    written = "[" * 400 + json.dumps(SHAPED[0]) + "]" * 400
    assert SHAPED[0] not in Redaction().redact_json(written)


def test_the_names_and_sums_of_every_document_are_no_reason_to_look_closer() -> None:
    assert not Redaction().may_be_in('{"benchmark_id": "q1", "arithmetic": "1,000 tasks × $0.002 = $2"}')
