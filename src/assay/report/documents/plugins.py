"""The JSON document of `assay list`: built-in members and plug-ins of each kind, with their options."""

from __future__ import annotations

from typing import Any


def plugins_document(kind: str, *, with_params: bool) -> list[dict[str, Any]]:
    """Names and sources of one kind of plug-in, or of the specs or teams that ship with Assay; importing none without params."""
    if kind in ("specs", "teams"):
        from assay.spec import shipped

        files = shipped.builtin_specs() if kind == "specs" else shipped.builtin_teams()
        return [
            {"name": name, "source": "assay", "description": shipped.description_of(file)}
            for name, file in files.items()
        ]
    from assay.plugin.lookup import sources

    return [
        {"name": source.name, "source": source.origin} | (_params(kind, source.name) if with_params else {})
        for source in sources(kind)
    ]


def _params(kind: str, name: str) -> dict[str, Any]:
    """What it is for, and its options as far as files can set them."""
    from assay.errors import AssayError
    from assay.plugin.documentation import documentation_of
    from assay.plugin.lookup import find
    from assay.plugin.options import KINDS, option_schema

    if kind not in KINDS:
        return {}
    try:
        member = find(kind, name)
        schema = option_schema(kind, member)
    except AssayError as error:
        return {"error": str(error)}
    needed = schema.get("required", ())
    params = {key: _param(field, key in needed) for key, field in schema.get("properties", {}).items()}
    return {"description": documentation_of(member).summary, "params": params}


def _param(field: dict[str, Any], is_required: bool) -> dict[str, Any]:
    known = {**_merge_any_of(field), **field, **({"required": True} if is_required else {})}
    names = ("type", "enum", "default", "minimum", "exclusiveMinimum", "description", "required")
    return {key: known[key] for key in names if key in known}


def _merge_any_of(field: dict[str, Any]) -> dict[str, Any]:
    """Type, choices and limits of a param that may also be left out, or be of several types."""
    parts = [part for part in field.get("anyOf", ()) if part.get("type") != "null"]
    types = dict.fromkeys(part["type"] for part in parts if "type" in part)
    merged = {key: value for part in parts for key, value in part.items()}
    return {**merged, "type": " or ".join(types)} if types else {}
