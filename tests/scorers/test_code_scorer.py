from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import threading
import time
from pathlib import Path

import pytest
from tests.execute.carrying import eventually
from tests.scorers.asking import judgement, made, shown, value
from tests.scorers.sandbox_escapes import ESCAPES, Outside
from tests.wording import Wording

from assay.execute.process_tree import MARK

pytestmark = pytest.mark.usefixtures("bubblewrap")

ADD = "def add(a, b):\n    return a + b\n"
TESTS = "assert add(1, 2) == 3\nassert add(-1, 1) == 0\n"


@pytest.mark.parametrize(
    "output",
    [
        ADD,
        f"Sure!\n```python\n{ADD}```\nThis adds.",
        f"```\n{ADD}",
        f"```python\n{ADD}```\nTry it:\n```python\nprint(add(input(), 2))\n```",
        f"```bash\nrm -rf x\n```\n```py\n{ADD}```",
    ],
)
def test_code_in_an_output_is_found_and_passes_its_tests(output: str) -> None:
    assert value("code", output, TESTS) == 1.0


@pytest.mark.parametrize(
    ("tests", "share"),
    [
        (TESTS + "assert add(2, 2) == 5\nassert add(1, 1) == 3\n", 0.5),
        ([{"call": "add(1, 2)", "expected": 3}, {"call": "add([1], [2])", "expected": [1]}], 0.5),
        ([{"call": "(add(0.1, 0.2), 1)", "expected": [0.3, 1]}], 1.0),
        (["assert add(1, 1) == 2", "assert add('a', 'b') == 'ba'"], 0.5),
        ("def test_one():\n    assert add(1, 1) == 2\ndef test_two():\n    assert add(1, 1) == 3\n", 0.5),
        ("for n in range(3):\n    assert add(n, n) == 2 * n\n", 1.0),
    ],
)
def test_partial_gives_the_share_of_tests_that_pass(tests: object, share: float) -> None:
    assert value("code", ADD, tests, partial=True) == share


def test_all_or_nothing_says_what_failed(wording: Wording) -> None:
    found = judgement("code", "def add(a, b):\n    raise ValueError('no idea')", TESTS)
    assert found.value == 0.0
    assert found.reason.startswith("0 of 2 ")
    assert found.reason.endswith(" ValueError: no idea")
    wording(found.reason)


def test_tests_of_the_case_go_before_its_expected_output() -> None:
    check = {"tests": "def check(candidate):\n    assert candidate(2, 2) == 4\n", "entry_point": "add"}
    wrong = "def add(a, b):\n    return 5"
    assert value("code", ADD, "nothing", check) == 1.0
    assert value("code", wrong, "nothing", check) == 0.0


@pytest.mark.parametrize("tests", [None, "def broken(:", "x = 1", [], [{"call": "add(1, 2)"}], 5])
def test_a_case_without_tests_that_can_be_run_is_unscored(tests: object) -> None:
    assert value("code", ADD, tests) is None


@pytest.mark.parametrize(
    "output",
    [
        None,
        "",
        "I cannot do that.",
        "import os\nos._exit(0)",
        "import os\nos._exit(250)",
        "raise SystemExit",
        "import sys\nsys.exit(0)",
        "def add(a, b):\n    import os\n    os._exit(0)",
        "\ud800",
        "x" * 300_000,
        'print(\'["token", "test", ""]\' * 2)',
        "import ctypes\nctypes.string_at(0)",
    ],
)
def test_junk_and_cheats_pass_nothing(output: object) -> None:
    assert value("code", output, TESTS, partial=True) == 0.0


def test_what_passed_before_the_time_was_up_counts(wording: Wording) -> None:
    slow = "def add(a, b):\n    while a < 0: pass\n    return a + b"
    start = time.monotonic()
    found = judgement("code", slow, TESTS, partial=True, seconds=3)
    assert found.value == 0.5
    assert found.reason.startswith("1 of 2 ")
    wording(found.reason)
    assert time.monotonic() - start < 100


def test_memory_is_limited() -> None:
    greedy = "def add(a, b):\n    return len(bytearray(400 * 2**20)) * 0 + a + b"
    assert "MemoryError" in judgement("code", greedy, TESTS, memory_mb=128).reason
    assert value("code", greedy, TESTS, memory_mb=1024) == 1.0


def test_secrets_of_the_environment_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    code, check = "import os\nfound = list(os.environ)", "assert 'SOME_API_KEY' not in found"
    assert value("code", code, check) == 1.0


@pytest.mark.parametrize(
    "action",
    [
        "os.kill(os.getppid(), 9)",
        "os.fork()",
        "os.system('true')",
        "subprocess.run(['true'])",
        "socket.create_connection(('127.0.0.1', 9))",
    ],
)
def test_signals_processes_and_sockets_are_refused(action: str) -> None:
    code = f"import os, subprocess, socket\ntry:\n    {action}\n    done = True\nexcept PermissionError:\n    done = False\n"
    assert value("code", code, "assert not done") == 1.0


def test_files_outside_the_working_folder_are_safe_and_inside_it_work(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    code = f"import os\nwith open('note', 'w') as note: note.write('x')\nos.remove('note')\nos.remove({str(precious)!r})"
    reason = judgement("code", code, "assert add").reason
    assert reason.startswith("0 of 1 ")
    assert "; FileNotFoundError" in reason
    assert precious.read_text() == "kept"


def test_nothing_is_left_running(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = f"assay-test-{os.getpid()}"
    monkeypatch.setenv(MARK, mark)
    code = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
    judging = threading.Thread(target=lambda: found.append(value("code", code, "assert True", seconds=3)))
    found: list[float | None] = []
    judging.start()
    assert eventually(lambda: _marked(mark) != [])
    judging.join()
    assert found == [0.0]
    assert eventually(lambda: _marked(mark) == [])


def _marked(mark: str) -> list[str]:
    """Processes that were given this mark in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if mark.encode() in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
    return found


def test_on_an_event_loop_the_code_runs_beside_it() -> None:
    async def both() -> tuple[float | None, int]:
        result = made("code").score(shown("import time\ntime.sleep(1.5)\n" + ADD, TESTS))
        assert inspect.isawaitable(result)
        judging = asyncio.ensure_future(result)
        turns = 0
        while not judging.done():
            await asyncio.sleep(0.01)
            turns += 1
        return judging.result().value, turns

    score, turns = asyncio.run(both())
    assert score == 1.0
    assert turns > 5


STACK = """
class Empty(Exception):
    def __init__(self, text, code):
        super().__init__(text)
        self.code = code
class Stack:
    limit = 3
    def __init__(self, items=()): self.items = list(items)
    def push(self, item): self.items.append(item); return self
    def pop(self):
        if not self.items: raise Empty("nothing there", 7)
        return self.items.pop()
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __getitem__(self, place): return self.items[place]
    def __eq__(self, other): return self.items == other.items
    def __enter__(self): return self
    def __exit__(self, *error): self.items.clear()
    @classmethod
    def of(cls, *items): return cls(items)
"""

STYLES = {
    "a class": (STACK, "s = Stack()\ns.push(1).push(2)\nassert len(s) == 2 and s.pop() == 2 and s[0] == 1 and list(s) == [1]\nassert Stack.of(1) == Stack.of(1) != Stack.of(2)\nassert isinstance(s, Stack) and Stack.limit == 3 and s.items == [1]"),
    "an exception of the code": (STACK, "try:\n    Stack().pop()\n    assert False\nexcept Empty as error:\n    assert str(error) == 'nothing there' and error.code == 7"),
    "a context manager": (STACK, "with Stack([1]) as s:\n    assert len(s) == 1\nassert len(s) == 0 and not s"),
    "an exception": ("def f(x):\n    return {}[x]", "try:\n    f('k')\n    assert False\nexcept KeyError as error:\n    assert error.args == ('k',)"),
    "an exception of the standard library": ("import json\ndef f(x): return json.loads(x)", "import json\ntry:\n    f('{')\n    assert False\nexcept json.JSONDecodeError:\n    pass\nassert f('1') == 1"),
    "arguments changed in place": ("def f(items, table):\n    items.sort(); table['n'] = len(items)", "items, table = [3, 1, 2], {}\nassert f(items, table=table) is None\nassert items == [1, 2, 3] and table == {'n': 3}"),
    "a list in a list changed in place": ("def f(grid): grid[0][0] = 9", "grid = [[1], [2]]\nrow = grid[0]\nf(grid)\nassert grid == [[9], [2]] and row == [9]"),
    "a generator": ("def f(n):\n    for i in range(n): yield i", "assert list(f(3)) == [0, 1, 2]\nassert sum(f(4)) == 6\nassert next(f(1)) == 0"),
    "a callback": ("def f(g, xs): return [g(x) for x in xs]\ndef h(xs, key): return sorted(xs, key=key)", "seen = []\ndef g(x):\n    seen.append(x)\n    return x * 2\nassert f(g, [1, 2]) == [2, 4] and seen == [1, 2]\nassert f(lambda x: -x, (5,)) == [-5]\nassert h(['aa', 'b'], key=len) == ['b', 'aa'] and f(int, ['7']) == [7]"),
    "a decorator": ("def twice(f):\n    def g(*a):\n        f(*a)\n        return f(*a)\n    return g", "calls = []\n@twice\ndef note(x):\n    calls.append(x)\n    return len(calls)\nassert note(5) == 2 and calls == [5, 5]"),
    "objects of the tests": ("def total(node):\n    n = 0\n    while node:\n        n += node.value\n        node = node.next\n    return n\ndef cut(node): node.next = None; return node", "class Node:\n    def __init__(self, value, next=None): self.value, self.next = value, next\nhead = Node(1, Node(2))\nassert total(head) == 3\nassert cut(head) is head and head.next is None"),
    "printed text": ("def hello(name): print('hi', name)", "import io, contextlib\nout = io.StringIO()\nwith contextlib.redirect_stdout(out):\n    hello('you')\nassert out.getvalue() == 'hi you\\n'"),
    "much printed text": ("import sys\ndef f():\n    for _ in range(100): print('x' * 1_000_000)\n    sys.stdout.buffer.write(b'y')\n    sys.stdout.flush()\n    return 1", "assert f() == 1"),
    "an import of all names": (ADD, "from answer import *\nassert add(1, 2) == 3"),
    "an import of the code": (ADD, "from answer import add as plus\nimport answer\nassert plus(1, 2) == answer.add(1, 2) == 3"),
    "an import that the code uses": ("def f(x): return math.sqrt(x)", "import math\nassert f(9) == 3 and math.isclose(f(2), 2 ** 0.5)"),
    "a coroutine": ("import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return x + 1", "import asyncio\nassert asyncio.run(f(1)) == 2\nasync def both():\n    return await asyncio.gather(f(1), f(2))\nassert asyncio.run(both()) == [2, 3]"),
    "values of many types": ("from decimal import Decimal\nfrom fractions import Fraction\nfrom datetime import date, timedelta\nfrom collections import Counter, deque, namedtuple\nP = namedtuple('P', 'x y')\ndef f(): return (1, 2**70, {1: 'a', (2, 3): {4}}, b'x', 1j, None, Decimal('1.10'), Fraction(1, 3), date(2024, 2, 29), timedelta(1), Counter('aab'), deque([1]), P(1, 2), range(3))", "from decimal import Decimal\nfrom fractions import Fraction\nfrom datetime import date, timedelta\nfrom collections import Counter, deque\nassert f() == (1, 2**70, {1: 'a', (2, 3): {4}}, b'x', 1j, None, Decimal('1.10'), Fraction(1, 3), date(2024, 2, 29), timedelta(1), Counter('aab'), deque([1]), (1, 2), range(3))\nassert f()[12].x == 1"),
    "an enumeration and a dataclass": ("from enum import Enum\nfrom dataclasses import dataclass\nclass Color(Enum):\n    RED = 1\n    BLUE = 2\n@dataclass\nclass P:\n    x: int\n    def __add__(self, other): return P(self.x + other.x)", "assert Color.RED.value == 1 and Color['BLUE'] is Color.BLUE and len(list(Color)) == 2\nassert P(1) + P(2) == P(3) and (P(1) + P(2)).x == 3 and str(P(1)) == 'P(x=1)'"),
    "subclasses of plain types": ("class Names(list):\n    def first(self): return self[0]\nclass Id(int): pass\ndef f(): return Names(['a', 'b'])\ndef g(): return Id(5)", "assert f() == ['a', 'b'] and f().first() == 'a' and len(f()) == 2 and 'b' in f()\nassert g() == 5 and 4 < g() < 6 and g() + 1 == 6"),
    "arithmetic of a class": ("class Vec:\n    def __init__(self, x): self.x = x\n    def __mul__(self, n): return Vec(self.x * n)\n    __rmul__ = __mul__\n    def __eq__(self, o): return self.x == o.x", "assert Vec(2) * 3 == Vec(6) and 3 * Vec(2) == Vec(6) and (Vec(2) * 3).x == 6"),
    "a context that swallows what the tests raise": ("from contextlib import contextmanager\n@contextmanager\ndef quiet():\n    try:\n        yield\n    except ValueError:\n        pass", "with quiet():\n    raise ValueError('x')\ntry:\n    with quiet():\n        raise KeyError('x')\n    assert False\nexcept KeyError:\n    pass"),
    "a decorator that tries again": ("def retry(f):\n    def g(*a):\n        for _ in range(3):\n            try: return f(*a)\n            except ValueError: pass\n    return g", "calls = []\n@retry\ndef flaky(x):\n    calls.append(x)\n    if len(calls) < 3: raise ValueError\n    return x\nassert flaky(5) == 5 and calls == [5, 5, 5]"),
    "a returned exception": ("def f(): return ValueError('x', 1)", "assert isinstance(f(), ValueError) and f().args == ('x', 1)"),
    "a function named like a built-in one": ("def sum(a, b): return a * b", "assert sum(3, 4) == 12"),
    "slices": ("class Row:\n    def __init__(self, *items): self.items = items\n    def __getitem__(self, place): return self.items[place]", "assert Row(1, 2, 3)[1:] == (2, 3) and Row(1, 2)[-1] == 2 and Row(1, 2, 3)[::2] == (1, 3)"),
    "a variable": ("found = [1]\ndef more(): found.append(2)", "assert found == [1]\nmore()\nassert found == [1, 2]"),
    "types of results": ("def f(): return [1, 'a', 2.0]", "assert isinstance(f(), list) and type(f()[1]) is str and [type(x) for x in f()] == [int, str, float]"),
    "collections that are more than a dict": ("from collections import Counter, OrderedDict, defaultdict\ndef f(s): return Counter(s)\ndef g(c): c['z'] = 9; return c.most_common(1)\ndef h():\n    d = defaultdict(int); d['a'] += 1\n    return d\ndef o(): return OrderedDict(b=2, a=1)", "from collections import Counter, OrderedDict\nassert f('aab').most_common(1) == [('a', 2)] and f('a')['none'] == 0 and h()['none'] == 0\nc = Counter('a')\nassert g(c) == [('z', 9)] and c['z'] == 9\nassert o() == OrderedDict(b=2, a=1) != OrderedDict(a=1, b=2)"),
    "values of the standard library": ("import datetime, uuid\nfrom pathlib import Path\ndef f(): return [datetime.time(1, 2), uuid.UUID(int=3), Path('a') / 'b']\ndef k(): return {'a': 1}.keys()", "import datetime, uuid\nfrom pathlib import Path\nassert f() == [datetime.time(1, 2), uuid.UUID(int=3), Path('a/b')]\nassert k() == {'a'}"),
    "files in memory": ("def f(source, target): target.write(source.read().upper())", "import io\nout = io.StringIO()\nf(io.StringIO('ab'), out)\nassert out.getvalue() == 'AB'"),
    "asynchronous generators and contexts": ("async def numbers(n):\n    for i in range(n): yield i\nclass Client:\n    async def __aenter__(self): return self\n    async def __aexit__(self, *error): self.closed = True\n    async def get(self): return 3", "import asyncio\nasync def main():\n    async with Client() as client:\n        assert await client.get() == 3\n    return client.closed, [n async for n in numbers(3)]\nassert asyncio.run(main()) == (True, [0, 1, 2])"),
    "names and docstrings": ("import functools\ndef keep(f):\n    @functools.wraps(f)\n    def g(): return f()\n    return g\nclass Named:\n    'A class.'\ndef named(): 'A function.'", "@keep\ndef one():\n    'The first.'\n    return 1\nassert (one(), one.__name__, one.__doc__) == (1, 'one', 'The first.')\nassert Named.__doc__ == Named().__doc__ == 'A class.' and named.__doc__ == 'A function.'"),
    "a class that answers questions": ("class Trie:\n    def __init__(self, *words): self.words = words\n    def startswith(self, text): return any(word.startswith(text) for word in self.words)\n    def __contains__(self, word): return word in self.words", "trie = Trie('apple')\nassert trie.startswith('app') and not trie.startswith('b')\nassert 'apple' in trie and 'pear' not in trie"),
    "annotations that the tests import": ("def f(xs: List[int]) -> int: return sum(xs)", "from typing import List\nassert f([1, 2]) == 3"),
    "StopIteration": ("class Count:\n    n = 0\n    def __iter__(self): return self\n    def __next__(self):\n        self.n += 1\n        if self.n > 2: raise StopIteration\n        return self.n\ndef stop(): raise StopIteration", "assert list(Count()) == [1, 2] and list(map(str, Count())) == ['1', '2']\ntry:\n    stop()\n    assert False\nexcept StopIteration:\n    pass"),
    "listed results": ("class Metres(float): pass\ndef f(): return {1: Metres(2.5)}", [{"call": "f()", "expected": {"1": 2.5}}, {"call": "f()[1]", "expected": 2.5}]),
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_right_code_passes_tests_of_any_style(style: str) -> None:
    found = judgement("code", *STYLES[style])
    assert (found.value, found.reason) == (1.0, "")


def test_no_program_cheats_the_scorer_or_leaves_its_sandbox() -> None:
    with Outside() as outside:
        found = {escape.name: outside.attempt(escape) for escape in ESCAPES}
    assert len(found) == len(ESCAPES) >= 100
    assert {name: result for name, result in found.items() if result[0].value != 0.0 or result[1]} == {}
