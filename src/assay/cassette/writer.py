"""Writes a cassette while it is being recorded: every exchange is redacted before it reaches the disk.

A secret may be recognised late, for instance when a program sends a token that an earlier answer contained. What is stored
already is then redacted again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self

from assay.cassette.redaction import ExchangeRedaction, searchable_text
from assay.cassette.tape import CassetteError, RecordedExchange, line_of, read_tape
from assay.model.redaction import Redaction
from assay.plugin.private_files import open_private


class CassetteWriter:
    """Stores exchanges without secrets, in a file that only its owner can read if it is a new one.

    A file that is there already is overwritten by the first exchange; with `appends`, what is in it stays. OSError where it
    cannot be written.
    """

    def __init__(self, path: Path, known: Redaction, appends: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._appends = path.resolve(), appends
        self._redaction = ExchangeRedaction(known)
        self._file = self._open()
        self._texts: list[str] | None = None if appends and self._path.stat().st_size else []
        """The text of each stored exchange, to search for secrets; None while a file that existed has not been read."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, exchange: RecordedExchange) -> None:
        if not self._appends:
            self._file.truncate(0)
            self._appends = True
        redacted = self._redaction.redact(exchange)
        self._file.write(line_of(redacted))
        # A program that is recorded may be killed at any time: what was exchanged until then is on the disk.
        self._file.flush()
        if self._texts is not None:
            self._texts.append(searchable_text(redacted))

    def learn_request(self, headers: Mapping[str, str], path: str, body: Any) -> None:
        """Learn the secrets of a request; what is stored already may hold one that was not known to be one."""
        new = self._redaction.learn_request(headers, path, body)
        if new is None or not self._appends:
            return
        if self._texts is None:
            self._texts = [searchable_text(exchange) for exchange in self._read_exchanges()]
        if any(new.redact_values(text) != text for text in self._texts):
            self._rewrite()

    def _read_exchanges(self) -> list[RecordedExchange]:
        try:
            return read_tape(self._path)
        except CassetteError:
            # Damaged before anything was appended to it: a replay names the lines.
            return []

    def _rewrite(self) -> None:
        """Redact what is stored; the file is replaced as a whole, or stays as it is."""
        if not (redacted := [self._redaction.redact(exchange) for exchange in self._read_exchanges()]):
            return
        copy = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            with open_private(copy) as file:
                file.writelines(map(line_of, redacted))
            # The file keeps the mode that its owner gave it, and its name always leads to a whole cassette.
            copy.chmod(self._path.stat().st_mode & 0o777)
            copy.replace(self._path)
        finally:
            copy.unlink(missing_ok=True)
        self._file.close()
        self._file = self._open()
        self._texts = [searchable_text(exchange) for exchange in redacted]

    def _open(self) -> IO[str]:
        return open_private(self._path, "a")
