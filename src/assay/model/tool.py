"""Tools that an agent may call, in the styles that people write them."""

from __future__ import annotations

from collections.abc import Mapping

Tool = Mapping[str, object]


def read_tools(value: object) -> tuple[Tool, ...]:
    """Tools as {name, description, parameters}; ValueError says which one cannot be read.

    OpenAI wraps them as {type: function, function: {…}}, Anthropic calls the parameters `input_schema`.

    >>> read_tools([{"type": "function", "function": {"name": "now"}}, {"name": "add", "input_schema": {}}])
    ({'name': 'now'}, {'name': 'add', 'parameters': {}})
    """
    if not isinstance(value, (list, tuple)):
        raise ValueError("'tools' must be a list of tools.")
    return tuple(_read(tool, number) for number, tool in enumerate(value, 1))


def _read(tool: object, number: int) -> Tool:
    if isinstance(tool, Mapping) and "name" not in tool and "function" in tool:
        kind, tool = tool.get("type", "function"), tool["function"]
        if kind != "function":
            raise ValueError(f"tool {number} is of type {kind!r}; only functions can be offered.")
    if not isinstance(tool, Mapping) or not isinstance(tool.get("name"), str) or not tool["name"]:
        raise ValueError(
            f"tool {number} has no 'name'. Write {{name, description, parameters}}, or OpenAI's {{type: function, function: {{…}}}}."
        )
    plain = {key: value for key, value in tool.items() if key != "input_schema"}
    if "input_schema" in tool:
        plain.setdefault("parameters", tool["input_schema"])
    if not isinstance(plain.get("parameters", {}), Mapping):
        raise ValueError(f"the parameters of tool '{plain['name']}' must be a JSON schema.")
    return plain
