from template_name.agent import TemplateNameAgent

from assay.model import Request
from assay.testing import AgentContract


class TestAgent(AgentContract):
    agent = "template_name.agent:TemplateNameAgent"
    options = {"suffix": "!"}


def test_the_suffix_ends_the_answer():
    assert TemplateNameAgent(suffix="!").answer(Request("case", "hello")).output == "HELLO!"
