"""Secrets taken out of whatever is kept: errors, attempts, logs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from assay.model.secret import REDACTED, SECRET_NAME, SHORTEST, may_be_secret

_SHORTEST_IN_OUTPUT = 16


class Redaction:
    """Knows values that nobody may read, in every form that a server is likely to echo them in."""

    def __init__(self, values: Iterable[str]) -> None:
        secrets = {word for value in values for word in (value, *value.split()) if may_be_secret(word)}
        # The longest first: a shorter one may be a part of it.
        self._secrets = sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True)
        self._long = [secret for secret in self._secrets if len(secret) >= _SHORTEST_IN_OUTPUT]

    def clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return self._without_cut_ones(text) if "…" in text else text

    def _without_cut_ones(self, text: str) -> str:
        """An excerpt may end within a secret, and half of one is still too much."""
        for secret in self._secrets:
            for size in range(len(secret) - 1, SHORTEST - 1, -1):
                text = text.replace(secret[:size] + "…", REDACTED + "…")
        return text

    def clean_output(self, output: object) -> object:
        """Only long secrets, which no text has by chance: an output is what is measured."""
        return self._cleaned(output) if self._long else output

    def _cleaned(self, output: object) -> object:
        if isinstance(output, str):
            for secret in self._long:
                output = output.replace(secret, REDACTED)
            return output
        if isinstance(output, Mapping):
            return {key: self._cleaned(value) for key, value in output.items()}
        if isinstance(output, list):
            return [self._cleaned(value) for value in output]
        return output


def secrets_among(variables: Mapping[str, str]) -> list[str]:
    """Values of variables whose names say so: another may well be what an agent is asked to answer."""
    return [value for name, value in variables.items() if SECRET_NAME.search(name)]


def _forms(secret: str) -> tuple[str, ...]:
    return secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret, safe="")
