"""The reference page of the REST API, made from its OpenAPI schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pages import NOTE

from assay.server.app import create_app
from assay.spec.settings import Settings
from assay.store.store import Store

_INTRODUCTION = """\
`assay serve` answers at `http://127.0.0.1:8765`. The examples are for the project of [the guide](../server.md); where the server has
keys, add `-H "Authorization: Bearer $ASSAY_KEY"`. The schema itself is at `/openapi.json`.

Scores go from 0 to 100. A request that could not be done is answered with `{"error", "message", "problems"}` and one of these
statuses: 401 there is no valid key, 403 the key may not do this, 404 there is no such thing, 409 the sides cannot be compared, 413 the
request is too large, 415 it is not JSON, 422 it makes no sense, 429 there are too many requests or waiting runs, 503 the database
cannot be reached.
"""
_EXAMPLES = {"agent_id": "good", "suite_id": "desk", "run_id": "last", "trial_id": "1"}
_QUERIES = {"/search": "q=desk", "/runs/{run_id}/report": "format=json"}
_WITHOUT_EXAMPLE = ("cancel", "resume", "events", "findings", "audit", "regression_id", "number")
"""They need a run or a regression of their own, or a key."""


def rest_page() -> str:
    with Store.open("sqlite:///:memory:") as store:
        schema = create_app(Settings(Path(), ""), store, "").openapi()
    sections = [
        part
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
        for part in _operation(schema, method, path, operation)
    ]
    return "\n".join([NOTE, "# REST API\n", _INTRODUCTION, *sections])


def _operation(
    schema: Mapping[str, Any], method: str, path: str, operation: Mapping[str, Any]
) -> Iterator[str]:
    yield f"## {method.upper()} {path}\n"
    needed = operation["x-scope"]
    about = operation.get("description", "").strip()
    scope = "Needs no key." if needed == "public" else f"Needs a key with the scope {needed}."
    yield f"{operation['summary']}. {about}{' ' if about else ''}{scope}\n"
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    rows = [*_parameters(operation), *(_fields(schema, body) if body else ())]
    if rows:
        yield "| parameter | in | type | default | |\n|---|---|---|---|---|"
        yield "\n".join(rows) + "\n"
    statuses = sorted(status for status in operation["responses"] if status.startswith("2"))
    answer = _answer(schema, operation["responses"]["200"])
    yield f"Answers {' or '.join(statuses)}{f' with {answer}' if answer else ''}.\n"
    if not any(word in path for word in _WITHOUT_EXAMPLE):
        yield f"```sh\n{_curl(schema, method, path, body)}\n```\n"


def _parameters(operation: Mapping[str, Any]) -> Iterator[str]:
    for one in operation.get("parameters", ()):
        shape = one["schema"]
        default = f"`{shape['default']}`" if shape.get("default") not in (None, []) else ""
        told = one.get("description", shape.get("description", ""))
        yield f"| `{one['name']}` | {one['in']} | {_type(shape)} | {default} | {told} |"


def _fields(schema: Mapping[str, Any], body: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    model = _resolve(schema, body)
    for name, shape in model["properties"].items():
        inner = _resolve(schema, shape)
        if "properties" in inner:
            yield f"| `{prefix}{name}` | body | object | `{{}}` | {inner.get('description', '')} |"
            yield from _fields(schema, shape, f"{prefix}{name}.")
            continue
        default = shape.get("default")
        written = "" if default in (None, [], {}) else f"`{json.dumps(default)}`"
        told = shape.get("description", "") or ("required" if name in model.get("required", ()) else "")
        yield f"| `{prefix}{name}` | body | {_type(shape)} | {written} | {told} |"


def _type(shape: Mapping[str, Any]) -> str:
    """Types and choices in words; what may be left out is not said to be null."""
    if "enum" in shape:
        return ", ".join(f"`{one}`" for one in shape["enum"])
    if "anyOf" in shape:
        return " or ".join(dict.fromkeys(_type(one) for one in shape["anyOf"] if one.get("type") != "null"))
    if "$ref" in shape:
        return f"`{shape['$ref'].rpartition('/')[2]}`"
    if shape.get("type") == "array":
        return f"list of {_type(shape['items'])}"
    return str(shape.get("type", "any"))


def _answer(schema: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """The fields of an answer; what is no JSON object is named by its type."""
    content = answer.get("content", {})
    shape = content.get("application/json", {}).get("schema")
    if shape is None:
        return " or ".join(f"`{kind}`" for kind in content)
    return ", ".join(f"`{name}`" for name in _resolve(schema, shape).get("properties", ()))


def _resolve(schema: Mapping[str, Any], shape: Mapping[str, Any]) -> Mapping[str, Any]:
    name = shape.get("$ref", "").rpartition("/")[2]
    return schema["components"]["schemas"][name] if name else shape


def _curl(schema: Mapping[str, Any], method: str, path: str, body: Mapping[str, Any] | None) -> str:
    query = _QUERIES.get(path) if method == "get" else None
    for name, value in _EXAMPLES.items():
        path = path.replace(f"{{{name}}}", value)
    url = f"http://127.0.0.1:8765{path}"
    if method == "get":
        return f"curl -s '{url}?{query}'" if query else f"curl -s {url}"
    written = json.dumps(_resolve(schema, body)["example"]) if body else "{}"
    return f"curl -s {url} -H 'Content-Type: application/json' \\\n  -d '{written}'"
