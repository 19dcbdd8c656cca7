"""Turns options and agents into targets: the servers that requests go to, with dialect, headers and trust in certificates.

Values of headers are read from the environment here and are never stored; a header that looks like a secret has to name a
variable.

Behind most agents there is a server too (a model provider's API, or plain HTTP): `target_of_agent` says where it is, so that the
engine can send the requests itself. Any other agent runs its own code in `agent_worker`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from assay.dialects import openai
from assay.dialects.lookup import PROVIDERS
from assay.errors import PlanError
from assay.http.request import is_loopback
from assay.load.options import LoadOptions, wrong_option
from assay.load.prompts import with_output_rules
from assay.load.request import Target, check_allowed, target_of
from assay.model import AgentUse
from assay.model.secret import NAMED, is_secret
from assay.plugin.agent_pool import expand_variables

KINDS = (*PROVIDERS, "http")
"""Types of agents that the engine can speak to by itself."""


def more_targets(options: LoadOptions, first: Target) -> list[Target]:
    """The others that requests go to in turn; they must be spoken to like the first."""
    others = []
    given = (options.target, *options.more_targets)
    if len(set(given)) < len(given):
        raise wrong_option("TARGET", "The same URL is given twice.")
    for url in options.more_targets:
        other = with_output_rules(target_for(replace(options, target=url)), options)
        check_allowed(other.url, options.allow_host)
        if (other.dialect, _endpoint(other)) != (first.dialect, _endpoint(first)):
            raise wrong_option(
                "TARGET",
                f"'{other.url}' and '{first.url}' have different APIs: all targets must take the same requests.",
            )
        others.append(replace(other, params=first.params, system=first.system))
    return others


def _endpoint(target: Target) -> str:
    """What requests of a dialect are written for; plain HTTP is the same at every address."""
    return "" if target.dialect == "http" else urlsplit(target.url).path.rstrip("/").rpartition("/")[2]


def target_for(options: LoadOptions) -> Target:
    """The server at the URL of the options. The key of OPENAI_API_KEY is sent along only where a provider is meant."""
    target = with_options(target_of(options.target, options.model, options.stream), options)
    names = {name.lower() for name in target.headers}
    if target.dialect != "openai" or "authorization" in names:
        return target
    # A server on this machine gets no key but one that a header gives it.
    if is_loopback(urlsplit(target.url).hostname or ""):
        return target
    sent = openai.PROVIDER.headers(openai.PROVIDER.key(None, os.environ))
    return replace(target, headers={**target.headers, **sent})


def target_of_agent(use: AgentUse, options: LoadOptions, environment: Mapping[str, str]) -> Target:
    """Build the target from the definition of an agent: its server, and how `assay run` would speak to
    it.

    Headers may hold secrets from the environment, so the target is never stored.
    """
    given: dict[str, Any] = expand_variables(dict(use.options), environment, use.name)
    headers = {str(name): str(value) for name, value in (given.get("headers") or {}).items()}
    if use.type == "http":
        url, streams = str(given["url"]), False
    else:
        provider = PROVIDERS[use.type]
        named = given.get("base_url") or given.get("url")
        url = provider.base_url(str(named) if named else None, environment) + provider.chat_path
        headers = {**provider.headers(provider.key(given.get("api_key"), environment)), **headers}
        streams = options.stream and bool(given.get("stream", True))
    return Target(
        url=url,
        dialect=use.type,
        model=options.model or given.get("model"),
        headers=headers,
        params=given.get("params") or given.get("options") or {},
        system=given.get("system"),
        streams=streams,
        is_agent=True,
        output=given.get("output") if use.type == "http" else None,
    )


def with_options(target: Target, options: LoadOptions) -> Target:
    """The target with the headers and the TLS settings of the options; headers of the options replace its own."""
    headers: dict[str, str] = {}
    for text in options.header:
        name, value = check_header(text)
        try:
            headers[name] = str(expand_variables(value, os.environ, "--header"))
        except PlanError:
            raise wrong_option("--header", f"'{name}' needs a variable that is not set: {value}") from None
    replaced = {name.lower() for name in headers}
    others = {name: value for name, value in target.headers.items() if name.lower() not in replaced}
    if options.ca_file is not None:
        _check_tls(options.ca_file, target, options)
    return replace(
        target,
        headers={**others, **headers},
        is_checked=target.is_checked and not options.insecure,
        ca_file=options.ca_file or target.ca_file,
    )


def _check_tls(file: str, target: Target, options: LoadOptions) -> None:
    if options.insecure:
        raise wrong_option("--ca-file", "Give either --ca-file or --insecure, which accepts any certificate.")
    if urlsplit(target.url).scheme != "https":
        raise wrong_option("--ca-file", f"needs an https:// URL; '{target.url}' does not use TLS.")
    check_ca_file(file)


def check_ca_file(file: str) -> None:
    """Read the file now, and not in each worker, where a useless file would look like a server that cannot be trusted."""
    import ssl

    from assay.load.tls import trusting

    try:
        trusting(file)
    except ssl.SSLError:
        raise wrong_option("--ca-file", f"'{file}' holds no certificate in PEM format.") from None
    except OSError as error:
        raise wrong_option("--ca-file", f"'{file}' cannot be read: {error.strerror}.") from None


def check_header(text: str) -> tuple[str, str]:
    """Name and value as written, if they may be stored with the run."""
    name, colon, value = (part.strip() for part in text.partition(":"))
    if not colon or not name:
        # What was meant to be a value is not repeated: it may be a secret.
        raise wrong_option(
            "--header", "must be written as 'Name: value'; ${NAME} is read from the environment."
        )
    if is_secret(name, is_sent=True) and not NAMED.search(value):
        raise wrong_option(
            "--header",
            f"'{name}' looks like a secret, and Assay stores what is written here with the run. Put it in a variable "
            f"and write '{name}: ${{NAME}}'.",
        )
    return name, value
