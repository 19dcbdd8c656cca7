"""Makes text of unknown origin safe to show on a terminal, in a document and in a shell command.

Names, answers and errors of agents may contain escape sequences, line breaks and marks that reverse the reading direction.
Everything that Assay prints goes through `make_visible` or `make_line`, and every command that it suggests through
`shell_command`, so that a copied command does what it shows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # Control characters but tab and line feed: they move the cursor or start commands.
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # Marks that reverse the order in which text is shown.
    "\ud800-\udfff\ufffe\uffff]"  # Halves of characters and non-characters, which no document can hold.
)
_LINE_BREAKS = re.compile(r"[\t\n\u2028\u2029]+ *")
_PICTURES = 0x2400
"""Unicode has a picture for each of the first 32 control characters."""


def make_visible(text: str) -> str:
    """Show control characters instead of sending them: no name, answer or error can move the cursor of a terminal.

    >>> make_visible("a\x1b[31mb"), make_visible("a\x9bb"), make_visible("user\u202etxt.exe"), make_visible("a\\r\\nb")
    ('a␛[31mb', 'a\\\\x9bb', 'user\\\\u202etxt.exe', 'a\\nb')
    """
    return _HIDDEN.sub(_picture, text.replace("\r\n", "\n"))


def make_line(text: str) -> str:
    """The same in one line: a name that holds a line break cannot pretend to be two lines of ours.

    >>> make_line("first\\n  second")
    'first second'
    """
    return make_visible(_LINE_BREAKS.sub(" ", text.replace("\r\n", "\n")))


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def shell_command(command: str, *operands: str, options: Sequence[str] = ()) -> str:
    """A command of ours to copy into a shell: names are quoted, and one that begins with a dash is no option.

    >>> shell_command("run", "my suite.yaml", options=["--agent", "$(id)"])
    "assay run 'my suite.yaml' --agent '$(id)'"
    >>> shell_command("run", "-rf", options=["--dry-run"])
    'assay run --dry-run -- -rf'
    """
    quoted, chosen = [quote_word(word) for word in operands], [quote_word(word) for word in options]
    if any(word.startswith("-") for word in operands):
        return " ".join(["assay", command, *chosen, "--", *quoted])
    return " ".join(["assay", command, *quoted, *chosen])


def quote_word(word: str) -> str:
    r"""One word of a shell command; control characters as the escapes that bash, zsh and ksh read.

    >>> quote_word("plain"), quote_word("it's"), quote_word("a\x1bb")
    ('plain', '\'it\'"\'"\'s\'', "$'a\\x1bb'")
    """
    if not _HIDDEN.search(word):
        import shlex

        return shlex.quote(word)
    escaped = word.replace("\\", "\\\\").replace("'", "\\'").encode("utf-8", "surrogatepass")
    return "$'" + "".join(chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}" for byte in escaped) + "'"
