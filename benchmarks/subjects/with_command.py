"""Prints how many round trips a second a `command` agent in `lines` mode makes: with_command.py N COMMAND…"""

import sys
from time import perf_counter

from assay.model import Request
from assay.plugin import lookup


def main(number: int, command: list[str]) -> None:
    agent = lookup.find("agents", "command")(command=command)
    agent.open()
    try:
        asked(agent, number // 10)
        started = perf_counter()
        asked(agent, number)
        print(number / (perf_counter() - started))
    finally:
        agent.close()


def asked(agent, number: int) -> None:
    for case in range(number):
        if agent.answer(Request(id=str(case), input="17 and 25")).output != "42":
            raise SystemExit("a wrong answer")


main(int(sys.argv[1]), sys.argv[2:])
