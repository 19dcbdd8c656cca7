"""How the server answers: documents as JSON without secrets, and every error as one kind of document with a status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from assay.errors import (
    AssayError,
    LookupFailed,
    RunInUse,
    RunNotFound,
    SpecError,
    StoreError,
    SuiteNotFound,
    Unlike,
)
from assay.model.redaction import known_secrets
from assay.plugin.json_data import format_strict_json, to_json_data

RETRY_SECONDS = 5
_STATUSES: tuple[tuple[type[AssayError], int], ...] = (
    (RunNotFound, 404),
    (LookupFailed, 404),
    (SuiteNotFound, 404),
    (RunInUse, 409),
    (Unlike, 409),
    (StoreError, 503),
    (AssayError, 422),
)
"""The first kind that an error is of gives its status."""


WORDS = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
    429: "too_many_requests",
    500: "internal_error",
    503: "unavailable",
}


class Problem(BaseModel):
    """One mistake in a request."""

    place: str = Field(description="Where it is, such as body.configuration.seed.")
    message: str


class ErrorAnswer(BaseModel):
    """The answer to every request that could not be done."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "error": "not_found",
                "message": "Unknown agent 'fsat'. Did you mean 'fast'? Agents: careful, fast.",
                "problems": [],
            }
        }
    )

    error: str = Field(description="The status in a word, such as not_found.")
    message: str = Field(description="What is wrong, and what to do.")
    problems: list[Problem] = Field(
        default_factory=list, description="Every mistake in the request, if there are several."
    )


def respond(document: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A document as `--json` prints it: strict JSON, with known secrets redacted."""
    content = to_json_data(document)
    written = format_strict_json(content)
    if known_secrets().may_be_in(written) and (cleaned := known_secrets().redact(content)) is not content:
        written = format_strict_json(cleaned)
    return Response(written.encode(errors="replace"), status, headers, "application/json")


def respond_written(written: str, headers: Mapping[str, str] | None = None) -> Response:
    """The same for a document that was written before: it is read only where a secret may be in it."""
    cleaned = known_secrets().redact_json(written)
    return Response(cleaned.encode(errors="replace"), 200, headers, "application/json")


def refuse(
    status: int,
    message: str,
    problems: list[dict[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The answer to a request that could not be done."""
    document = {"error": WORDS.get(status, "error"), "message": message, "problems": problems or []}
    retry = {"retry-after": str(RETRY_SECONDS)} if status in (429, 503) else {}
    return respond(document, status, {**retry, **(headers or {})})


def describe_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the errors of a route for its `responses=`: these statuses, each with the document of errors."""
    return {
        status: {"model": ErrorAnswer, "description": WORDS[status].replace("_", " ").capitalize()}
        for status in sorted(statuses)
    }


def describe_route(needed: dict[str, Any], model: Any, summary: str, *errors: int) -> dict[str, Any]:
    """Describe a route for OpenAPI: the scope that it needs, the document that it answers with, and its errors."""
    return {
        "openapi_extra": needed,
        "response_model": model,
        "summary": summary,
        "responses": describe_errors(*errors),
    }


def find_status(error: AssayError) -> int:
    return next(status for kind, status in _STATUSES if isinstance(error, kind))


def answer_errors(app: FastAPI) -> None:
    """Answer every error of this application with an `ErrorAnswer`."""

    @app.exception_handler(AssayError)
    def answer_refusal(request: Request, error: AssayError) -> Response:
        mistakes = error.mistakes if isinstance(error, SpecError) else ()
        return refuse(
            find_status(error),
            str(error),
            [{"place": mistake.key, "message": mistake.problem} for mistake in mistakes],
        )

    @app.exception_handler(RequestValidationError)
    def answer_bad_request(request: Request, error: RequestValidationError) -> Response:
        problems = [
            {"place": ".".join(map(str, mistake["loc"])), "message": str(mistake["msg"])}
            for mistake in error.errors()
        ]
        message = "; ".join(f"{problem['place']}: {problem['message']}" for problem in problems)
        return refuse(422, message, problems)

    @app.exception_handler(HTTPException)
    def answer_http_error(request: Request, error: HTTPException) -> Response:
        return refuse(error.status_code, str(error.detail), headers=error.headers)
