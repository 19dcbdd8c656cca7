"""compare, leaderboard and matrix as HTML and Markdown: the same findings as in the terminal, in files that work offline."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.command import AssayInline, Prepare
from tests.report.browsing import Pages, browser, pages  # noqa: F401
from tests.wording import Wording

SUITE = """
suite: sums
agents:
  - {name: good, type: python, target: "agents.py:good"}
  - {name: twin, type: python, target: "agents.py:good"}
  - {name: "<b>bad</b>", type: python, target: "agents.py:bad"}
benchmarks:
  - id: add
    name: Add two numbers
    cases: [%s]
    scorer: exact
    iterations: {warmup: 0, measured: 2}
"""
AGENTS = (
    "def good(text):\n    return str(sum(map(int, text.split('+'))))\n\n\ndef bad(text):\n    return '?'\n"
)


def play(assay: AssayInline) -> None:
    asked = ", ".join(f'{{id: c{n}, input: "{n}+1", expected: "{n + 1}"}}' for n in range(30))
    assay.write("s.yaml", SUITE % asked)
    assay.write("agents.py", AGENTS)
    assert assay.run_inline("s.yaml", "-q").code == 0


@pytest.fixture
def played(assay_inline: AssayInline, prepare: Prepare) -> AssayInline:
    """Two agents that are right every time, and one that never is."""
    prepare(assay_inline, play)
    return assay_inline


COMMANDS = {
    "leaderboard": ["leaderboard", "--metric", "accuracy"],
    "matrix": ["matrix"],
    "compare": ["compare", "<b>bad</b>", "good"],
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_page_is_written_in_both_formats_and_its_files_are_named(played: AssayInline, kind: str) -> None:
    done = played(*COMMANDS[kind], "--format", "html,md", "--out", "pages")
    assert done.code == 0
    assert done.out.split() == [str(Path("pages") / f"{kind}.{ending}") for ending in ("html", "md")]
    html, markdown = ((played.folder / "pages" / f"{kind}.{ending}").read_text() for ending in ("html", "md"))
    assert not re.search(r"(src|href)=.https?://", html)
    assert "<b>bad</b>" not in html
    assert "good" in markdown


def test_the_pages_say_who_leads_as_the_terminal_does(played: AssayInline, wording: Wording) -> None:
    last = played("leaderboard", "--metric", "accuracy", COLUMNS="300").out.splitlines()[-1]
    told = last.removeprefix("= ").partition(". ")[0].removesuffix(".")
    assert "good" in told
    assert "tied" in told
    for kind in COMMANDS:
        played(*COMMANDS[kind], "--format", "html,md")
    page = (played.folder / "leaderboard.html").read_text()
    assert re.search(r'<section class="verdict tie".*?<h2[^>]*>(.*?)</h2>', page, re.DOTALL)[1] == (  # type: ignore[index]
        told.replace("<b>", "&lt;b&gt;").replace("</b>", "&lt;/b&gt;")
    )
    verdict = re.search(r"\*\*(good .*?)\*\*", (played.folder / "compare.md").read_text())
    assert verdict is not None
    wording(verdict[1])


def test_several_agents_and_a_history_are_pages_too(played: AssayInline, wording: Wording) -> None:
    assert played("compare", "good", "twin", "<b>bad</b>", "--format", "md").code == 0
    lines = (played.folder / "compare.md").read_text().splitlines()
    table, pairs = (line for line in lines if line.startswith("## "))
    assert (table, pairs.startswith(f"{table} · ")) == ("## sums", True)
    wording(pairs)
    assert played.run_inline("s.yaml", "-q").code == 0
    runs = [run["id"] for run in played("runs", "list", "--json").json]
    assert played("compare", *runs, "--type", "time_series", "--format", "html").code == 0
    labels = re.findall(r'data-label="([^"]*)"', (played.folder / "compare.html").read_text())
    assert set(runs) <= set(labels)
    wording(labels[labels.index(runs[-1]) + 1])


def test_what_was_found_still_decides_the_exit_code(played: AssayInline) -> None:
    worse = played("compare", "good", "<b>bad</b>", "--fail-on", "worse", "--format", "md")
    assert worse.code == 1


def test_a_format_that_does_not_exist_is_refused_before_anything_is_written(played: AssayInline) -> None:
    done = played("leaderboard", "--format", "pdf")
    assert done.code == 2
    assert "'pdf'" in done.err
    assert played("matrix", "--out", "pages").code == 2


@pytest.mark.parametrize("width", [390, 1240])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_every_width_and_make_no_request(
    played: AssayInline,
    pages: Pages,  # noqa: F811
    width: int,
    scheme: str,
) -> None:
    for kind, arguments in COMMANDS.items():
        played(*arguments, "--format", "html")
        found: list[str] = []
        address = (played.folder / f"{kind}.html").as_uri()
        shown = pages.open(address, width, scheme, found, found)
        assert found == [address]
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
