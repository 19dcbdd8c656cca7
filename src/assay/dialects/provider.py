"""The addresses of a dialect's servers, and how to authenticate with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Provider:
    """Addresses and keys of the servers that speak a dialect. An agent's own settings go before the environment."""

    name: str
    public_url: str
    """The base address of the public server, or of the one on this machine."""
    chat_path: str
    """What comes after a base address to chat."""
    url_variable: str
    """The environment variable that names another base address."""
    key_variable: str | None = None
    key_header: tuple[str, str] = ("", "")
    """Name of the header, and what stands in it before the key."""
    fixed_headers: Mapping[str, str] = field(default_factory=dict)
    normalize: Callable[[str], str] = str
    """Makes a base address of what people write for one in the variable."""
    optional_end: str = ""
    """What a base address may end in although `chat_path` begins with it."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that address and key are read from."""
        return (self.url_variable, *([self.key_variable] if self.key_variable else ()))

    def base_url(self, given: str | None, environment: Mapping[str, str]) -> str:
        """Choose the address of the provider, without a slash at its end.

        An address that is given comes before that of the environment, which comes before the public one.
        """
        named = environment.get(self.url_variable)
        base = given or (self.normalize(named) if named else self.public_url)
        return base.rstrip("/").removesuffix(self.optional_end)

    def key(self, given: object, environment: Mapping[str, str]) -> str | None:
        known = given or (environment.get(self.key_variable) if self.key_variable else None)
        return str(known) if known else None

    def headers(self, key: str | None) -> dict[str, str]:
        """Build the headers that this provider demands; `key` is as returned by `key()`."""
        name, before = self.key_header
        return {**self.fixed_headers, **({name: before + key} if key and name else {})}
