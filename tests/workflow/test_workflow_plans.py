"""A plan that a model wrote is read, or refused with a code that says why."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.wording import Wording

from assay.builtin.experiments.shell_commands import parse_command, token_f1
from assay.builtin.experiments.workflow_plan import FAULTS, PlanFault, read_plan
from assay.builtin.experiments.workflow_task import STEPS, reference_plan


def steps(*written: Any) -> str:
    return json.dumps({"steps": list(written)})


def command(name: str, *needs: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "command": f"echo {name}", "depends_on": list(needs), **fields}


BAD: dict[str, list[object]] = {
    "not_json": ["I would first sort the file.", "", None, '{"steps": ['],
    "no_steps": ['{"plan": "sort"}', 7],
    "empty": [steps(), "[]"],
    "too_long": [steps(*(command(str(n)) for n in range(101)))],
    "bad_step": [
        steps("sort"),
        steps({"name": "a"}),
        steps({"name": "a", "command": 7}),
        steps(command("a", inputs=7)),
    ],
    "same_name": [steps(command("a"), command("a"))],
    "unknown_step": [steps(command("a", "b"))],
    "cycle": [steps(command("a", "b"), command("b", "a")), steps(command("a", "a"))],
    "outside": [steps(command("a", outputs=["/etc/passwd"])), steps(command("a", inputs=["../x"]))],
}


@pytest.mark.parametrize(
    ("code", "output"), [(code, output) for code, outputs in BAD.items() for output in outputs]
)
def test_a_plan_that_cannot_be_carried_out_is_refused_with_its_code(
    code: str, output: object, wording: Wording
) -> None:
    with pytest.raises(PlanFault) as refused:
        read_plan(output)
    assert refused.value.code == code
    wording(refused.value)


def test_every_fault_is_explained_and_tried() -> None:
    assert BAD.keys() == FAULTS.keys()


@pytest.mark.parametrize("wrap", ["{}", "Here is my plan:\n```json\n{}\n```\nGood luck!", "Sure: {} Done."])
def test_a_plan_is_found_in_what_models_write_around_it(wrap: str) -> None:
    plan = read_plan(wrap.replace("{}", steps(command("b", "a"), command("a"))))

    assert [step.name for step in plan.steps] == ["a", "b"]


def test_the_reference_plan_is_read_back_as_it_was_written() -> None:
    assert read_plan(json.dumps({"steps": reference_plan().document()})) == reference_plan()
    assert len(STEPS) == 8


@pytest.mark.parametrize(
    ("line", "tools", "flags"),
    [
        ("samtools-x sort -@4 a-b.bam", ["samtools-x"], []),
        ("echo 'rm -rf /' \"-x\"", ["echo"], []),
        ("LC_ALL=C sort -u --parallel=2 f | uniq -c", ["sort", "uniq"], ["-u", "--parallel", "-c"]),
        ("for f in *.csv; do wc -l $f; done", ["wc"], ["-l"]),
        ("x=$(head -n1 f) && echo ${x}", ["head", "echo"], ["-n1"]),
        ("/usr/bin/env A=1 timeout 5 curl -s u", ["env", "timeout", "curl"], ["-s"]),
        ("find . -name x -exec rm -f {} +", ["find", "rm"], ["-name", "-exec", "-f"]),
        ("bash -c 'sudo true'", ["bash", "sudo", "true"], ["-c"]),
    ],
)
def test_tools_and_flags_are_read_from_the_syntax_of_a_command(
    line: str, tools: list[str], flags: list[str]
) -> None:
    parsed = parse_command(line)

    assert list(dict.fromkeys(use.tool for use in parsed.uses)) == tools
    assert set(flags) <= {flag for use in parsed.uses for flag in use.flags}
    assert parsed.is_valid


def test_plans_are_compared_by_their_words() -> None:
    assert token_f1(["sort a", "uniq b"], ["uniq b", "sort a"]) == 1.0
    assert token_f1(["sort a"], ["cut -f1 b"]) == 0.0
