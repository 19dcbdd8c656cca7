"""Lists of values under a name of their own become axes.

An experiment may declare names under which a spec lists values of one of its params: `profiles` for `profile`. A list under such
a name is an axis of the sweep, wherever it stands; a single value is that of the param. After this step only the params' own
names are left, and mistakes are still reported at the names that the user wrote.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from assay.errors import Mistake
from assay.plugin.params import list_params
from assay.spec.read import LocatedEntry


def resolve_list_params(member: Any, located: LocatedEntry, mistakes: list[Mistake]) -> LocatedEntry:
    """The entry with the params' own names; one that is given under both names is added to `mistakes`."""
    declared, entry = list_params(member), located.entry
    sections: dict[str, dict[str, Any]] = {"params": {}, "sweep": {}}
    written: dict[tuple[str | int, ...], tuple[str | int, ...]] = {}
    for section, keys in (("params", entry.params), ("sweep", entry.sweep)):
        for name, value in keys.items():
            param = declared.get(name, name)
            if name in declared and section == "params" and isinstance(value, list) and len(value) == 1:
                value = value[0]  # an axis of one value is none
            target = "sweep" if name in declared and isinstance(value, list) else section
            if name in declared:
                if param in {*entry.params, *entry.sweep, *sections["params"], *sections["sweep"]}:
                    problem = f"lists values of '{param}', which is given as well."
                    mistakes.append(located.origin.mistake((section, name), problem, "Remove one of them."))
                written[target, param] = (section, name)
            sections[target][param] = value
    if not written:
        return located
    origin = replace(located.origin, written=written)
    return LocatedEntry(entry.model_copy(update=sections), origin)
