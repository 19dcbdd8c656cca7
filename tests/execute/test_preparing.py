"""What an experiment may do around its executions: prepare them, doubt them, take agents, say what it cannot read."""

from __future__ import annotations

from tests.command import AssayInline
from tests.suites.project import Stored

HEAD = "from time import sleep\nfrom assay import Experiment, register_experiment\n"


def run(assay: AssayInline, body: str, *more: str, code: int = 0):
    assay.write("mine.py", f'{HEAD}\n@register_experiment("mine")\nclass Mine(Experiment):\n{body}\n')
    done = assay("run", "mine.py", *more, "--json")
    assert done.code == code, done.err
    return done


def test_preparing_runs_before_each_execution_and_is_not_timed(assay_inline: AssayInline) -> None:
    body = """
    def __init__(self):
        super().__init__()
        self.prepared = 0
    def prepare_once(self, context):
        sleep(1.5)
        self.prepared += 1
    def execute_once(self, context):
        return {"prepared": self.prepared}
"""
    run(assay_inline, body, "--warmup", "1")
    found = Stored(assay_inline.folder).all

    assert [one.measurements["prepared"] for one in found] == [1, 2]
    assert all(one.measurements["seconds"] < 1.5 for one in found)


def test_preparing_does_not_count_against_the_limit_of_an_execution(assay_inline: AssayInline) -> None:
    body = """
    def prepare_once(self, context):
        sleep(1.5)
    def execute_once(self, context):
        return {"x": 1}
"""
    assay_inline.write("s.yaml", "experiment: mine\nload: [mine.py]\nlimits: {seconds: 1}\n")
    assay_inline.write("mine.py", f'{HEAD}\n@register_experiment("mine")\nclass Mine(Experiment):\n{body}\n')
    done = assay_inline("run", "s.yaml", "--repetitions", "2", "--json")
    assert done.code == 0, done.err
    assert [one.status for one in Stored(assay_inline.folder).measured] == ["ok", "ok"]


def test_preparing_may_be_async_and_what_it_raises_fails_its_execution_alone(
    assay_inline: AssayInline,
) -> None:
    body = """
    async def prepare_once(self, context):
        if context.iteration_index == 1:
            raise OSError("no room")
    async def execute_once(self, context):
        return {"x": 1}
"""
    run(assay_inline, body, "--repetitions", "3")
    found = Stored(assay_inline.folder).measured

    assert [one.status for one in found] == ["ok", "failed", "ok"]
    assert (found[1].error or "").startswith("OSError: no room")


def test_a_remark_is_shown_once_however_often_it_is_made(assay_inline: AssayInline) -> None:
    remark = "The wind was strong."
    body = f"""
    def execute_once(self, context):
        context.remark("{remark}")
"""
    done = run(assay_inline, body, "--repetitions", "3", "--processes", "2").json
    remarks = [warning for warning in done["warnings"] if warning["code"] == "remark"]

    assert [(one["message"], one["trial"]) for one in remarks] == [(remark, "mine")]


def test_a_setting_that_is_read_back_as_none_is_not_told_rather_than_not_taken(
    assay_inline: AssayInline,
) -> None:
    body = """
    def __init__(self, speed: int = 1, colour: str | None = None):
        super().__init__({"speed": speed})
    def execute_once(self, context):
        context.read_back(speed=None, colour="red")
"""
    done = run(assay_inline, body, "--sweep", "speed=1,2").json
    found = {warning["code"]: warning["message"] for warning in done["warnings"]}

    assert "'speed'" in found["setting-not-told"]
    assert found.keys() & {"setting-not-taken", "identical-arms"} == set()


def test_figures_are_marked_as_made_up_where_the_experiment_says_so(assay_inline: AssayInline) -> None:
    body = """
    def execute_once(self, context):
        context.read_back(simulated=True)
        return {"x": 1}
"""
    (trial,) = run(assay_inline, body).json["trials"]
    assert {metric["kind"] for metric in trial["metrics"].values()} == {"simulated"}


def test_any_experiment_may_take_agents(assay_inline: AssayInline) -> None:
    body = """
    def __init__(self, kind: str = ""):
        super().__init__({"kind": kind})
    @staticmethod
    def params_of(agent):
        return {"kind": agent.type}
    def execute_once(self, context):
        return {"length": len(self.params["kind"])}
"""
    done = run(assay_inline, body, "--agent", "nop", "--agent", "oracle").json

    assert [trial["name"] for trial in done["trials"]] == ["mine · nop", "mine · oracle"]
    assert [trial["agent"]["name"] for trial in done["trials"]] == ["nop", "oracle"]
    assert [trial["parameters"] for trial in done["trials"]] == [{"kind": "nop"}, {"kind": "oracle"}]
