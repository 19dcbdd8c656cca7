"""From options to the servers that requests go to, and how each is spoken to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from assay.errors import PlanError
from assay.execute.agents import filled_in
from assay.execute.load.inputs import with_output_rules
from assay.execute.load.options import LoadOptions, wrong_option
from assay.execute.load.request import Target, check_allowed, is_loopback, target_of
from assay.model.secret import NAMED, is_secret


def more_targets(options: LoadOptions, first: Target) -> list[Target]:
    """The others that requests go to in turn; they must be spoken to like the first."""
    found = []
    given = (options.target, *options.more_targets)
    if len(set(given)) < len(given):
        raise wrong_option("TARGET", "The same URL is given twice.")
    for url in options.more_targets:
        other = with_output_rules(target_for(replace(options, target=url)), options)
        check_allowed(other.url, options.allow_host)
        if (other.dialect, _endpoint(other)) != (first.dialect, _endpoint(first)):
            raise wrong_option(
                "TARGET",
                f"'{other.url}' is not spoken to like '{first.url}': requests in turn have to be alike.",
            )
        found.append(replace(other, params=first.params, system=first.system))
    return found


def _endpoint(target: Target) -> str:
    """What requests of a dialect are written for; plain HTTP is the same at every address."""
    return "" if target.dialect == "http" else urlsplit(target.url).path.rstrip("/").rpartition("/")[2]


def target_for(options: LoadOptions, environment: Mapping[str, str] = os.environ) -> Target:
    target = with_options(target_of(options.target, options.model, options.stream), options, environment)
    key = environment.get("OPENAI_API_KEY")
    names = {name.lower() for name in target.headers}
    if target.dialect == "openai" and key and "authorization" not in names and not _is_here(target.url):
        return replace(target, headers={**target.headers, "authorization": f"Bearer {key}"})
    return target


def with_options(target: Target, options: LoadOptions, environment: Mapping[str, str] = os.environ) -> Target:
    given = dict(_header(text, environment) for text in options.header)
    names = {name.lower() for name in given}
    kept = {name: value for name, value in target.headers.items() if name.lower() not in names}
    if options.ca_file is not None:
        _check_tls(options.ca_file, target, options)
    return replace(
        target,
        headers={**kept, **given},
        is_checked=target.is_checked and not options.insecure,
        ca_file=options.ca_file or target.ca_file,
    )


def _check_tls(file: str, target: Target, options: LoadOptions) -> None:
    if options.insecure:
        raise wrong_option("--ca-file", "Give either --ca-file or --insecure, which takes any certificate.")
    if urlsplit(target.url).scheme != "https":
        raise wrong_option(
            "--ca-file", f"There is no TLS at '{target.url}': an address with TLS begins with https://"
        )
    check_ca_file(file)


def check_ca_file(file: str) -> None:
    """Now, and not in each worker: a file that is no use would look like a server that cannot be trusted."""
    import ssl

    from assay.execute.load.tls import trusting

    try:
        trusting(file)
    except ssl.SSLError:
        raise wrong_option("--ca-file", f"'{file}' holds no certificate in PEM format.") from None
    except OSError as error:
        raise wrong_option("--ca-file", f"'{file}' cannot be read: {error.strerror}.") from None


def _is_here(url: str) -> bool:
    return is_loopback(urlsplit(url).hostname or "")


def check_header(text: str) -> tuple[str, str]:
    """Name and value as written, if they may be kept."""
    name, colon, value = (part.strip() for part in text.partition(":"))
    if not colon or not name:
        # What was meant to be a value is not repeated: it may be a secret.
        raise wrong_option("--header", "is not a header. Write 'Name: value'; ${NAME} stands for a variable.")
    if is_secret(name, is_sent=True) and not NAMED.search(value):
        raise wrong_option(
            "--header",
            f"'{name}' looks like a secret, and what is written here is kept with the run. Put it in a variable "
            f"and write '{name}: ${{NAME}}'.",
        )
    return name, value


def _header(text: str, environment: Mapping[str, str]) -> tuple[str, str]:
    name, value = check_header(text)
    try:
        return name, str(filled_in(value, environment, "--header"))
    except PlanError:
        raise wrong_option("--header", f"'{name}' needs a variable that is not set: {value}") from None
