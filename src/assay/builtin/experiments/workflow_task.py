"""The workflow task that ships with Assay: eight steps of text and CSV tools over generated orders, with known results.

The data come from a seed, and what the last steps must find is computed from them in Python. So a workflow is judged by its
results, and not by whether its commands ended with 0.
"""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from assay.builtin.experiments.workflow_plan import WorkflowPlan, WorkflowStep, sort_steps

PROMPT = (
    "Analyse the orders in data/orders.csv (columns id, day, region, product, quantity, price in cents). "
    "Lines without a quantity are broken: drop them. "
    "Write results/revenue.csv with one line per region, 'region,revenue' in cents, the highest revenue first, and without a header; "
    "results/products.txt with the three products that were ordered most often (by number of orders), one per line, the first one first; "
    "and results/words.txt with the five most frequent words of data/notes.txt in lower case, one per line as 'count word', "
    "the most frequent first. Then write results/report.txt, which has these three files one after the other."
)
REGIONS = ("north", "south", "east", "west")
PRODUCTS = ("anvil", "bellows", "chisel", "drill", "easel", "flute", "gear")
_WORDS = (
    "late",
    "broken",
    "fine",
    "again",
    "refund",
    "thanks",
    "missing",
    "parcel",
    "today",
    "works",
    "please",
    "order",
)
REQUIRED = ("sort", "uniq", "cat")
"""Tools that the task is meant to exercise, as a user would list them."""

_CLEAN = (
    "mkdir -p work results && grep -E '^[0-9]+,[^,]*,[^,]*,[^,]*,[0-9]+,' data/orders.csv > work/clean.csv"
)
STEPS = (
    WorkflowStep("clean", _CLEAN, (), ("data/orders.csv",), ("work/clean.csv",)),
    WorkflowStep(
        "sum",
        "awk -F, '{ s[$3] += $5 * $6 } END { for (r in s) printf \"%s,%d\\n\", r, s[r] }' work/clean.csv > work/sums.csv",
        ("clean",), ("work/clean.csv",), ("work/sums.csv",),
    ),
    WorkflowStep("rank", "sort -t, -k2,2nr work/sums.csv > results/revenue.csv", ("sum",), ("work/sums.csv",), ("results/revenue.csv",)),
    WorkflowStep("products", "cut -d, -f4 work/clean.csv | sort > work/products.txt", ("clean",), ("work/clean.csv",), ("work/products.txt",)),
    WorkflowStep(
        "top",
        "uniq -c work/products.txt | sort -k1,1nr -k2 | head -n 3 | awk '{ print $2 }' > results/products.txt",
        ("products",), ("work/products.txt",), ("results/products.txt",),
    ),
    WorkflowStep(
        "words",
        "mkdir -p work && tr -cs '[:alpha:]' '\\n' < data/notes.txt | tr '[:upper:]' '[:lower:]' > work/words.txt",
        (), ("data/notes.txt",), ("work/words.txt",),
    ),
    WorkflowStep(
        "count",
        "mkdir -p results && grep . work/words.txt | sort | uniq -c | sort -k1,1nr -k2 | head -n 5 | awk '{ print $1, $2 }' > results/words.txt",
        ("words",), ("work/words.txt",), ("results/words.txt",),
    ),
    WorkflowStep(
        "report",
        "cat results/revenue.csv results/products.txt results/words.txt > results/report.txt",
        ("rank", "top", "count"), ("results/revenue.csv", "results/products.txt", "results/words.txt"), ("results/report.txt",),
    ),
)  # fmt: skip


def reference_plan() -> WorkflowPlan:
    return sort_steps(STEPS)


@dataclass(frozen=True, slots=True)
class TaskData:
    """Files of a task, and what its results must be."""

    files: Mapping[str, str]
    results: Mapping[str, str]

    def write(self, folder: Path) -> None:
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def share_of_right_results(self, found: Mapping[str, Path | None]) -> float:
        """The share of the expected files that are there and right; the space around words does not matter."""
        right = sum(
            path is not None and path.read_text(errors="replace").split() == self.results[name].split()
            for name, path in found.items()
        )
        return right / len(self.results)


def make_data(rows: int, seed: int) -> TaskData:
    """Orders and notes from a seed; counts that decide a rank are made to differ, so that every rank is unique."""
    chance = Random(f"workflow {seed}")
    revenue: dict[str, int] = defaultdict(int)
    ordered: Counter[str] = Counter()
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(("id", "day", "region", "product", "quantity", "price"))
    weights = range(len(PRODUCTS), 0, -1)
    for number in range(1, rows + 1):
        region, product = chance.choice(REGIONS), chance.choices(PRODUCTS, weights)[0]
        quantity, price = chance.randint(1, 9), chance.randint(100, 9999)
        is_broken = chance.random() < 0.05
        day = f"2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
        writer.writerow((number, day, region, product, "" if is_broken else quantity, price))
        if not is_broken:
            revenue[region] += quantity * price
            ordered[product] += 1
    notes, words = _make_notes(rows, chance)
    ranked = sorted(revenue.items(), key=lambda item: -item[1])
    results = {
        "results/revenue.csv": "\n".join(f"{region},{cents}" for region, cents in ranked),
        "results/products.txt": "\n".join(_most_frequent(ordered, 3)),
        "results/words.txt": "\n".join(f"{words[word]} {word}" for word in _most_frequent(words, 5)),
    }
    results["results/report.txt"] = "\n".join(results.values())
    return TaskData({"data/orders.csv": table.getvalue(), "data/notes.txt": notes}, results)


def _make_notes(rows: int, chance: Random) -> tuple[str, Counter[str]]:
    """Sentences whose words have frequencies that fall by rank; capitals and marks are to be dealt with."""
    weights = [1 / rank for rank in range(1, len(_WORDS) + 1)]
    counts: Counter[str] = Counter()
    lines = []
    for _ in range(max(20, rows // 10)):
        words = chance.choices(_WORDS, weights, k=chance.randint(4, 9))
        counts.update(words)
        lines.append(" ".join(words).capitalize() + chance.choice(".!?"))
    return "\n".join(lines) + "\n", counts


def _most_frequent(counts: Counter[str], most: int) -> list[str]:
    return [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]]
