"""A task of Inspect AI: n trivial samples for a model that only echoes; `inspect eval inspect_trivial.py -T n=1000`."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate


def echo(messages, tools, tool_choice, config):
    output = ModelOutput.from_content("mockllm/model", messages[-1].text)
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


@task
def trivial(n: int = 1000) -> Task:
    return Task(
        dataset=[Sample(id=str(number), input=str(number), target=str(number)) for number in range(n)],
        solver=generate(),
        scorer=match(),
        model=get_model("mockllm/model", custom_outputs=echo),
    )
