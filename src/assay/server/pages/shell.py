"""What all pages share: errors become pages, and every page stands in the same frame."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from assay.errors import AssayError
from assay.report.pages.page import Page
from assay.server.answers import find_status
from assay.server.context import caller_of
from assay.server.html import describe_page, error_page, render

_LOCAL_PATH = re.compile(r"/(?![/\\])[\x21-\x7e]*")


class PageRoute(APIRoute):
    """A route whose errors are shown as pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_or_explain(request: Request) -> Response:
            try:
                return await handle(request)
            except AssayError as error:
                return error_page(find_status(error), str(error))
            except RequestValidationError as error:
                found = [f"{mistake['loc'][-1]}: {mistake['msg']}" for mistake in error.errors()]
                return error_page(422, "; ".join(found))
            except HTTPException as error:
                return error_page(error.status_code, str(error.detail))

        return handle_or_explain


def page_router() -> APIRouter:
    return APIRouter(route_class=PageRoute, include_in_schema=False)


def find_local_path(path: str) -> str:
    """A path on this server; anything else, such as the address of another one, becomes the dashboard."""
    return path if _LOCAL_PATH.fullmatch(path) else "/"


def go_to(path: str) -> Response:
    """Redirect to a page of this server after a form was sent, so that loading the page again sends nothing."""
    return RedirectResponse(find_local_path(path), 303)


def show(request: Request, template: str, active: str, **context: Any) -> Response:
    """A template in the frame of the dashboard; `active` is the name of its entry in the navigation."""
    accepted = request.headers.get("accept-encoding", "")
    return render(template, 200, accepted=accepted, caller=caller_of(request), active=active, **context)


def show_page(
    request: Request, page: Page, active: str, template: str = "view.html.j2", **context: Any
) -> Response:
    """A page as commands write it to files, in the frame of the dashboard."""
    return show(request, template, active, **describe_page(page), **context)
