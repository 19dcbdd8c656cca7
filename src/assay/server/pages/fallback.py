"""The page for addresses that do not exist."""

from __future__ import annotations

from fastapi import Response
from starlette.exceptions import HTTPException

from assay.server.access import READ_PAGE
from assay.server.pages.shell import page_router

router = page_router()


@router.get("/ui/{path:path}", openapi_extra=READ_PAGE)
def refuse_path(path: str) -> Response:
    raise HTTPException(404, f"There is no page '/ui/{path}'.")
