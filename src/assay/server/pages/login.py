"""Logging in with a key and out again, and the files that pages load."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

from assay.server.access import COOKIE, PUBLIC_PAGE, READ_PAGE, is_loopback_host
from assay.server.context import Context, caller_of
from assay.server.html import find_static, render
from assay.server.pages.shell import find_local_path, page_router

router = page_router()

SESSION = timedelta(hours=12)
_KEPT = "public, max-age=31536000, immutable"


@router.get("/login", openapi_extra=PUBLIC_PAGE)
def ask_for_key(
    context: Context, following: Annotated[str, Query(alias="next", max_length=2000)] = "/"
) -> Response:
    if not context.store.has_keys():
        return RedirectResponse("/", 303)
    return render("login.html.j2", caller=None, active="login", next=find_local_path(following), problem="")


@router.post("/login", openapi_extra=PUBLIC_PAGE)
def log_in(
    request: Request,
    context: Context,
    key: Annotated[str, Form(max_length=200)] = "",
    following: Annotated[str, Form(alias="next", max_length=2000)] = "/",
) -> Response:
    """Open a session for the key, and redirect to the requested page."""
    now = datetime.now(UTC)
    found = context.store.find_key(key.strip())
    if found is None or not found.is_valid(now):
        problem = "This key was revoked or has expired." if found else "There is no such key."
        return render(
            "login.html.j2",
            401,
            caller=None,
            active="login",
            next=find_local_path(following),
            problem=problem,
        )
    expires = min(now + SESSION, found.expires or now + SESSION)
    session = context.store.create_session(found, expires, now)
    response = RedirectResponse(find_local_path(following), 303)
    response.set_cookie(
        COOKIE,
        session,
        max_age=int((expires - now).total_seconds()),
        httponly=True,
        samesite="lax",
        # Only this machine is reached without TLS.
        secure=not is_loopback_host(request.headers.get("host", "")),
    )
    return response


@router.post("/logout", openapi_extra=READ_PAGE)
def log_out(request: Request, context: Context) -> Response:
    """End the session; a copy of its cookie is invalid too."""
    context.store.end_session(caller_of(request).session)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE)
    return response


@router.get("/static/{name}", openapi_extra=PUBLIC_PAGE)
def read_static(name: str) -> Response:
    """A style, a script or a picture; always compressed, which every browser can read."""
    found = find_static(name)
    if found is None:
        raise HTTPException(404, f"There is no file '{name}'.")
    headers = {"content-encoding": "gzip", "cache-control": _KEPT}
    return Response(found.content, media_type=found.media_type, headers=headers)
