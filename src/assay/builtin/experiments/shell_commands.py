"""Which tools and flags a shell command uses, read from its syntax tree.

The parser is tree-sitter's grammar of bash: words in quotes, file names with hyphens and text that only looks like a command
are not taken for tools or flags. Scripts in quotes after `sh -c` and the commands of `xargs`, `env` and the like are read, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})
_PREFIXES = frozenset(
    {"env", "xargs", "nice", "nohup", "time", "timeout", "stdbuf", "exec", "command", "sudo", "find"}
)
"""Tools that run another one, named among their arguments."""
_FLAG = re.compile(r"-{1,2}[A-Za-z0-9][\w-]*")
_VALUE = re.compile(r"\d[\d.]*[smhd]?|[A-Za-z_]\w*=.*|\{\}|;|\+")
_DEPTH = 3


@dataclass(frozen=True, slots=True)
class CommandUse:
    """One simple command: its tool, without a path, and its flags, without their values."""

    tool: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What a whole command line uses."""

    uses: tuple[CommandUse, ...] = ()
    is_valid: bool = True
    """Whether the shell could parse it."""

    @property
    def tools(self) -> frozenset[str]:
        return frozenset(use.tool for use in self.uses)


@dataclass(slots=True)
class CommandCounts:
    """How many command lines use each tool, and how often each flag is used."""

    tools: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)

    def add(self, line: CommandLine) -> None:
        self.tools.update(line.tools)
        self.flags.update(flag for use in line.uses for flag in use.flags)


@cache
def _parser() -> Any:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parse_command(text: str, depth: int = 0) -> CommandLine:
    """
    >>> line = parse_command("sort -t, -k2,2nr a-b.csv | head -n 3 > 'not -a flag'")
    >>> [(use.tool, use.flags) for use in line.uses]
    [('sort', ('-t', '-k2')), ('head', ('-n',))]
    >>> sorted(parse_command("find . -name '*.txt' | xargs -n 1 sh -c 'rm -f $0'").tools)
    ['find', 'rm', 'sh', 'xargs']
    >>> parse_command("echo 'open").is_valid
    False
    """
    root = _parser().parse(text.encode()).root_node
    uses = [use for node in _walk(root) if node.type == "command" for use in _read_command(node, depth)]
    return CommandLine(tuple(uses), not root.has_error)


def _walk(node: Any) -> Iterator[Any]:
    yield node
    for child in node.children:
        yield from _walk(child)


def _read_command(node: Any, depth: int) -> Iterator[CommandUse]:
    name = node.child_by_field_name("name")
    if name is not None:
        yield from _read_words(
            _text(name), [_text(word) for word in node.children_by_field_name("argument")], depth
        )


def _read_words(name: str, arguments: Sequence[str], depth: int) -> Iterator[CommandUse]:
    """The tool itself and, where it runs another one, that as well."""
    tool = name.rpartition("/")[2]
    flags = [
        match[0] for word in arguments if (match := _FLAG.match(word)) and not word.startswith(("'", '"'))
    ]
    yield CommandUse(tool, tuple(flags))
    words = list(map(_unquote, arguments))
    if depth >= _DEPTH:
        return
    if tool in _SHELLS and "-c" in words[:-1]:
        yield from parse_command(words[words.index("-c") + 1], depth + 1).uses
    elif tool in _PREFIXES:
        rest = _find_inner(tool, words)
        if rest:
            yield from _read_words(rest[0], rest[1:], depth + 1)


def _find_inner(tool: str, words: Sequence[str]) -> Sequence[str]:
    """The command among the arguments of a tool that runs one; flags and their values before it are passed over."""
    if tool == "find":
        starts = [number for number, word in enumerate(words) if word in ("-exec", "-execdir", "-ok")]
        return words[starts[0] + 1 :] if starts else ()
    for number, word in enumerate(words):
        if not word.startswith("-") and not _VALUE.fullmatch(word):
            return words[number:]
    return ()


def _text(node: Any) -> str:
    return bytes(node.text).decode(errors="replace")


def _unquote(word: str) -> str:
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"" else word


def command_tokens(lines: Iterable[str]) -> Counter[str]:
    """Words of commands, without quotes and operators, for a comparison of two plans."""
    return Counter(token for line in lines for token in re.findall(r"[\w./%+:=@-]+", line))


def token_f1(written: Iterable[str], reference: Iterable[str]) -> float:
    """Harmonic mean of precision and recall over the multisets of tokens (as in SQuAD, Rajpurkar et al. 2016).

    >>> round(token_f1(["sort -u a"], ["sort a"]), 3)
    0.8
    """
    a, b = command_tokens(written), command_tokens(reference)
    shared = (a & b).total()
    return 2 * shared / (a.total() + b.total()) if shared else 0.0
