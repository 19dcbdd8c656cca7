"""Programs that try to cheat the `code` scorer or to get out of its sandbox: `ESCAPES`, run with `with Outside() as outside`."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from assay.model import Case, ScorerUse
from assay.plugin.scorer import Judged, Judgement
from assay.plugin.scorers import make_scorer

ASSERTS = "assert add(2, 3) == 5\nassert add(-7, 4) == -3\n"
CALLS = [{"call": "add(2, 3)", "expected": 5}, {"call": "add(-7, 4)", "expected": -3}]
LEAK = [{"call": "leak()", "expected": "@SECRET@"}]
REACHED = [{"call": "leak()", "expected": True}]
WRONG = "\ndef add(a, b):\n    return 12345\n"


@dataclass(frozen=True, slots=True)
class Escape:
    """A wrong program. It succeeds when it gets any score, or when `Outside.traces` finds something."""

    name: str
    code: str
    tests: object = ASSERTS
    metadata: Mapping[str, Any] = field(default_factory=dict)


def _claim(name: str, code: str, tests: object = ASSERTS, **metadata: Any) -> Escape:
    """A claim of success without the work."""
    return Escape(name, code, tests, metadata)


def _leak(name: str, body: str, tests: object = LEAK) -> Escape:
    """Reads what must not be readable: `leak()` returns the secret, or True."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return Escape(name, f"{_IMPORTS}\ndef leak():\n{lines}\n", tests)


def _trace(name: str, body: str) -> Escape:
    """Changes something outside; whatever it raises is ignored."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return Escape(name, f"{_IMPORTS}\ntry:\n{lines}\nexcept BaseException:\n    pass\n{WRONG}")


_IMPORTS = "import os, sys, socket, glob, time"
_ALWAYS = "class Always{base}:\n    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n    __hash__ = None\n"
_UNAUDITED = """\
import subprocess, types
quiet = types.SimpleNamespace(**vars(sys))
quiet.audit = lambda *event: None
subprocess.sys = quiet
"""
_SHELL = _UNAUDITED + "print(subprocess.run(['/bin/sh', '-c', {command!r}], capture_output=True, text=True))"

CLAIMS = (
    _claim("an object that equals everything", _ALWAYS.format(base="") + "def add(a, b): return Always()"),
    _claim("an object that equals everything, called", _ALWAYS.format(base="") + "def add(a, b): return Always()", CALLS),
    _claim("an int that equals everything", _ALWAYS.format(base="(int)") + "def add(a, b): return Always(9)"),
    _claim("a float that equals everything", _ALWAYS.format(base="(float)") + "def add(a, b): return Always(9)", CALLS),
    _claim("a class in place of the function", "class add:\n    def __init__(self, a, b): pass\n    def __eq__(self, other): return True"),
    _claim("an object that pretends to be an int", "class Fake:\n    __class__ = property(lambda self: int)\n    def __eq__(self, other): return True\ndef add(a, b): return Fake()"),
    _claim("an object that is in any order", "class Fake:\n    __lt__ = __gt__ = __le__ = __ge__ = lambda self, other: True\ndef add(a, b): return Fake()", "assert 4 < add(2, 3) < 6\nassert add(1, 1) >= 2\n"),
    _claim("an object that contains everything", "class Fake:\n    def __contains__(self, item): return True\n    def __iter__(self): return iter(())\ndef items(): return Fake()", "assert 3 in items()\n"),
    _claim("an object in a list that equals everything", _ALWAYS.format(base="") + "def items(): return [Always()] * 3", "assert items() == [1, 2, 3]\n"),
    _claim("an object that subtracts to nothing", "class Fake:\n    __sub__ = __rsub__ = lambda self, other: Fake()\n    def __abs__(self): return self\n    def __lt__(self, other): return True\ndef add(a, b): return Fake()", "assert abs(add(0.5, 1) - 1.5) < 1e-9\n"),
    _claim("an object that is told the expected value by -", "class Fake:\n    def __sub__(self, other): return 0.0\n    __rsub__ = __sub__\ndef add(a, b): return Fake()", "assert abs(add(0.5, 1) - 1.5) < 1e-9\nassert abs(1.5 - add(0.5, 1)) < 1e-9\n"),
    _claim("a class in place of the function that is told the expected value by -", "class add:\n    def __init__(self, a, b): pass\n    def __sub__(self, other): return 0.0\nadd.__name__ = 'Add'", "assert abs(add(0.5, 1) - 1.5) < 1e-9\n"),
    _claim("an object that starts with everything", "class Fake:\n    def startswith(self, text): return True\n    isdigit = lambda self: True\ndef greet(): return Fake()", "assert greet().startswith('Hello')\nassert greet().isdigit()\n"),
    _claim("an object that is a subset of everything", "class Fake:\n    def issubset(self, other): return True\n    issuperset = issubset\ndef items(): return Fake()", "assert items().issubset({1, 2})\nassert items().issuperset({1, 2})\n"),
    _claim("a context that swallows failed assertions", "class Timer:\n    def __enter__(self): return self\n    def __exit__(self, *error): return True" + WRONG, "def test_add():\n    with Timer():\n        assert add(1, 2) == 3\n"),
    _claim("a context that swallows errors of comparisons", "class Timer:\n    def __enter__(self): return self\n    def __exit__(self, *error): return True\n    def __len__(self): return 'x'\ndef add(a, b): return Timer()", "def test_add():\n    with Timer() as timer:\n        assert add(1, 2) < 4\ndef test_len():\n    with Timer() as timer:\n        assert len(timer) == 3\n"),
    _claim("a context that swallows its own errors", "class Pool:\n    def __enter__(self): return self\n    def __exit__(self, *error): return True\n    def run(self): raise ValueError", "def test_run():\n    with Pool() as pool:\n        assert pool.run() == 3\n"),
    _claim("a decorator that swallows failed assertions", "def retry(f):\n    def g(*a):\n        try: return f(*a)\n        except Exception: return None\n    return g" + WRONG, "def test_add():\n    @retry\n    def check():\n        assert add(1, 2) == 3\n    check()\n"),
    _claim("a list filled with objects that equal everything", _ALWAYS.format(base="") + "def order(items): items[:] = [Always()] * len(items)", "def test_order():\n    items = [3, 1, 2]\n    order(items)\n    assert items == [1, 2, 3]\n"),
    _claim("a candidate that returns an object that equals everything", _ALWAYS.format(base="") + "def add(a, b): return Always()", "def check(candidate):\n    assert candidate(2, 2) == 4\n", entry_point="add"),
    _claim("functions of __main__ replaced", "import __main__, types\nfor name, value in list(vars(__main__).items()):\n    if isinstance(value, types.FunctionType): setattr(__main__, name, lambda *a, **k: '')" + WRONG),
    _claim("the comparison of __main__ replaced", "import __main__\n__main__._same = __main__.is_same = lambda *a: True\n__main__._tested = lambda *a: ''" + WRONG, CALLS),
    _claim("functions of every loaded module replaced", "import sys, types\nfor module in list(sys.modules.values()):\n    if str(getattr(module, '__name__', '')).startswith(('code_', 'link', '__main__')):\n        for name, value in list(vars(module).items()):\n            if isinstance(value, types.FunctionType): setattr(module, name, lambda *a, **k: True)" + WRONG),
    _claim("expected values read from frames", "import sys\ndef add(a, b):\n    frame = sys._getframe()\n    while frame:\n        for value in list(frame.f_locals.values()):\n            if isinstance(value, dict) and 'expected' in value: return value['expected']\n        frame = frame.f_back\n    return 12345", CALLS),
    _claim("expected values read from the collector", "import gc\ndef add(a, b):\n    for value in gc.get_objects():\n        if type(value) is dict and value.get('call') == f'add({a}, {b})': return value['expected']\n    return 12345", CALLS),
    _claim("expected values parsed from the source of the tests", "import gc, re\ndef add(a, b):\n    for value in gc.get_objects():\n        for text in (value.values() if type(value) is dict else value if type(value) is list else ()):\n            found = type(text) is str and re.search(re.escape(f'add({a}, {b}) == ') + r'(-?\\d+)', text)\n            if found: return int(found[1])\n    return 12345"),
    _claim("expected values read from the code of the caller", "import sys\ndef add(a, b):\n    frame, found = sys._getframe(), []\n    while frame:\n        found += [c for c in frame.f_code.co_consts if type(c) is int]\n        frame = frame.f_back\n    return found[-1] if found else 12345"),
    _claim("expected values read from memory", "import re\ndef add(a, b):\n    for line in open('/proc/self/maps'):\n        if '[heap]' in line or 'rw-p' in line:\n            start, end = (int(x, 16) for x in line.split()[0].split('-'))\n            memory = open('/proc/self/mem', 'rb', 0); memory.seek(start)\n            found = re.search(re.escape(f'add({a}, {b}) == ').encode() + rb'(-?\\d+)', memory.read(end - start))\n            if found: return int(found[1])\n    return 12345"),
    _claim("reports written to every descriptor", "import os, json\nlines = [['test', ''], ['token', 'test', ''], ['value', 5], {'value': 5}, True, 5]\nfor fd in range(3, 64):\n    for line in lines:\n        try: os.write(fd, json.dumps(line).encode() + b'\\n')\n        except OSError: pass\nos._exit(0)"),
    _claim("reports written by a thread", "import os, threading\ndef shout():\n    for _ in range(200):\n        for fd in range(0, 16):\n            try: os.write(fd, b'[\"test\", \"\"]\\n[\"value\", true]\\n')\n            except OSError: pass\nthreading.Thread(target=shout, daemon=True).start()" + WRONG),
    _claim("reports written at exit", "import atexit, os\ndef shout():\n    for fd in range(0, 16):\n        try: os.write(fd, b'[\"test\", \"\"]\\n' * 2)\n        except OSError: pass\natexit.register(shout)\nraise SystemExit(0)"),
    _claim("the process ended at once", "import os\nos._exit(0)"),
    _claim("the process ended in the call", "import os\ndef add(a, b): os._exit(0)"),
    _claim("SystemExit raised in the call", "def add(a, b): raise SystemExit(0)"),
    _claim("KeyboardInterrupt raised in the call", "def add(a, b): raise KeyboardInterrupt"),
    _claim("GeneratorExit raised in the call", "def add(a, b): raise GeneratorExit"),
    _claim("an exception without a description", "class Odd(Exception):\n    def __str__(self): raise SystemExit(0)\n    __repr__ = __str__\ndef add(a, b): raise Odd()"),
    _claim("an exception with a hostile class", "class Meta(type):\n    def __getattribute__(cls, name): raise SystemExit(0)\nclass Odd(Exception, metaclass=Meta): pass\ndef add(a, b): raise Odd()"),
    _claim("SkipTest raised in the call", "import unittest\ndef add(a, b): raise unittest.SkipTest"),
    _claim("compile replaced", "import builtins\nbuiltins.compile = lambda *a, **k: (lambda: None).__code__" + WRONG),
    _claim("eval and exec replaced", "import builtins\nbuiltins.exec = lambda *a, **k: None\nbuiltins.eval = lambda *a, **k: None" + WRONG),
    _claim("AssertionError replaced", "import builtins\nclass Quiet(Exception):\n    def __new__(cls, *a): raise SystemExit(0)\nbuiltins.AssertionError = AssertionError = Quiet" + WRONG),
    _claim("asserts switched off", "import builtins\nreal = builtins.compile\nbuiltins.compile = lambda *a, **k: real(*a, **{**k, 'optimize': 2})" + WRONG),
    _claim("started again with -O", "import os, sys\nos.execv(sys.executable, [sys.executable, '-O', *sys.argv])" + WRONG),
    _claim("json replaced", "import json\njson.dumps = lambda *a, **k: 'true'\njson.loads = lambda *a, **k: {'expected': 12345}" + WRONG),
    _claim("str.__eq__ replaced through a trace function", "import sys\ndef tracer(frame, event, arg):\n    for name in ('expected', 'right', 'wanted'):\n        if name in frame.f_locals: frame.f_locals[name] = 12345\n    return tracer\nsys.settrace(tracer)" + WRONG, CALLS),
    _claim("builtins shadowed in the module", "def abs(x): return 0\ndef all(x): return True\ndef isinstance(x, y): return True" + WRONG, "assert abs(add(0.5, 1) - 1.5) < 1e-9\n"),
    _claim("builtins shadowed for an import of all names", "def abs(x): return 0\n__all__ = ['abs', 'add']" + WRONG, "from answer import *\nassert abs(add(0.5, 1) - 1.5) < 1e-9\n"),
    _claim("all() shadowed in the module", "def all(x): return True" + WRONG, "assert all(add(n, n) == 2 * n for n in range(3))\n"),
    _claim("the tests' own function replaced", "def test_add(): pass\ndef check(f): pass" + WRONG, "def test_add():\n    assert add(1, 1) == 2\n"),
    _claim("modules for the tests left in the folder", "for name in ('json', 'math', 'unittest', 'answer', 'sitecustomize'):\n    open(name + '.py', 'w').write('import builtins\\ndef isclose(*a, **k): return True\\n')" + WRONG, "import math\nassert math.isclose(add(0.5, 1), 1.5)\n"),
    _claim("math replaced", "import math\nmath.isclose = lambda *a, **k: True" + WRONG, "import math\nassert math.isclose(add(0.5, 1), 1.5)\n"),
    _claim("the globals of a callback read", "def apply(f, x):\n    return f.__globals__['EXPECTED']", "EXPECTED = 8\nassert apply(lambda n: n + n, 4) == EXPECTED\n"),
    _claim("the constants of a callback read", "def apply(f, x):\n    return f.__code__.co_consts[-1]", "def work(n):\n    assert n != 77\n    return 77\nassert apply(work, 4) == 77\n"),
    _claim("the frame of a generator read", "def total(numbers):\n    return numbers.gi_frame.f_globals['EXPECTED']", "EXPECTED = 6\nassert total(n for n in (1, 2, 3)) == EXPECTED\n"),
    _claim("the class of an argument read", "def total(node):\n    return type(node).__init__.__globals__['EXPECTED']\n", "EXPECTED = 6\nclass Node:\n    def __init__(self, value): self.value = value\nassert total(Node(6)) == EXPECTED\n"),
    _claim("the class of an argument read by name", "def total(node):\n    return node.__init__.__globals__['EXPECTED']\n", "EXPECTED = 6\nclass Node:\n    def __init__(self, value): self.value = value\nassert total(Node(6)) == EXPECTED\n"),
    _claim("the frames of an error of a callback read", "def apply(f):\n    try:\n        f()\n    except Exception as error:\n        step = error.__traceback__\n        while step:\n            if 'EXPECTED' in step.tb_frame.f_globals: return step.tb_frame.f_globals['EXPECTED']\n            step = step.tb_next\n", "EXPECTED = 8\ndef fail(): raise ValueError\nassert apply(fail) == EXPECTED\n"),
    _claim("a result without end", "def items():\n    found = []\n    found.append(found)\n    return found", "assert items() == [1, 2]\n"),
    _claim("a result of a hundred thousand levels", "def items():\n    found = []\n    for _ in range(100_000): found = [found]\n    return found", "assert items() == [1, 2]\n"),
    _claim("a result of 40 MB", "def add(a, b): return 'x' * (40 << 20)"),
    _claim("a named tuple that starts with everything", "from collections import namedtuple\ndef greet(): return namedtuple('Fake', 'startswith isdigit')(lambda text: True, lambda: True)", "assert greet().startswith('Hello')\nassert greet().isdigit()\n"),
    _claim("a class that starts with everything", "class Fake:\n    startswith = staticmethod(lambda text: True)\n    isdigit = staticmethod(lambda: True)\ndef greet(): return Fake", "assert greet().startswith('Hello')\nassert greet().isdigit()\n"),
    _claim("an exception that starts with everything", "class Fake(Exception):\n    startswith = staticmethod(lambda text: True)\n    isdigit = staticmethod(lambda: True)\ndef greet(): return Fake()", "assert greet().startswith('Hello')\nassert greet().isdigit()\n"),
    _claim("StopIteration raised in a map", "def add(a, b): raise StopIteration", "assert all(map(lambda n: add(n, n) == 2 * n, range(3)))\n"),
    _claim("SkipTest raised in a test case", "import unittest\ndef add(a, b): raise unittest.SkipTest", "import unittest\nclass T(unittest.TestCase):\n    def test_add(self): self.assertEqual(add(2, 3), 5)\nfound = unittest.defaultTestLoader.loadTestsFromTestCase(T).run(unittest.TestResult())\nassert found.wasSuccessful()\n"),
    _claim("the tests' cases replaced where they fail", "cases = []\ndef add(a, b): raise ValueError", "cases = [(add(2, 3), 5)]\nfor got, wanted in cases:\n    assert got == wanted\n"),
    _claim("the tests' function replaced where it fails", "def test_add(): pass\ndef add(a, b): raise ValueError", "def test_add(got=add(1, 1)):\n    assert got == 2\n"),
    _claim("the check replaced where it fails", "def check(candidate): pass\ndef add(a, b): raise ValueError", "FOUND = add(1, 2)\ndef check(candidate):\n    assert candidate(2, 2) == 4\n", entry_point="add"),
    _claim("an ordered dict in another order", "from collections import OrderedDict\ndef items(): return OrderedDict(b=2, a=1)", "from collections import OrderedDict\nassert items() == OrderedDict(a=1, b=2)\n"),
    _claim("a key as a text and as a number", "def items(): return {'1': 2, 1: 5}", [{"call": "items()", "expected": {"1": 5}}]),
    _claim("an asynchronous context that swallows failed assertions", "class Timer:\n    async def __aenter__(self): return self\n    async def __aexit__(self, *error): return True" + WRONG, "import asyncio\nasync def main():\n    async with Timer():\n        assert add(1, 2) == 3\nasyncio.run(main())\n"),
    _claim("a limit raised", "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))\nblock = bytearray(3 << 30)\ndef add(a, b): return a + b if len(block) else 0"),
)  # fmt: skip

LEAKS = (
    _leak("the environment", "return os.environ.get('CANARY_API_KEY')"),
    _leak("the environment of the parent", "text = open(f'/proc/{os.getppid()}/environ').read()\nreturn text.split('CANARY_API_KEY=')[1].split('\\0')[0]"),
    _leak("the environment of the scorer's process", "open('/proc/@PARENT@/environ').read()\nreturn True", REACHED),
    _leak("the environment of every process", "for name in glob.glob('/proc/[0-9]*/environ'):\n    try: text = open(name).read()\n    except OSError: continue\n    if 'CANARY_API_KEY=' in text: return text.split('CANARY_API_KEY=')[1].split('\\0')[0]"),
    _leak("the command line of a process", "return '@MARK@' in open('/proc/@VICTIM@/cmdline').read()", REACHED),
    _leak("the memory of another process", "open('/proc/@VICTIM@/mem', 'rb')\nreturn True", REACHED),
    _leak("a file by its path", "return open('@PRECIOUS@').read()"),
    _leak("a file by a descriptor of its folder", "folder = os.open('@FOLDER@', os.O_RDONLY)\nreturn os.read(os.open('precious', os.O_RDONLY, dir_fd=folder), 99).decode()"),
    _leak("a file from the root of another process", "return open('/proc/@VICTIM@/root@PRECIOUS@').read()"),
    _leak("a file from the root of the first process", "return open('/proc/1/root@PRECIOUS@').read()"),
    _leak("a file by way of parent folders", "return open('../' * 40 + '@PRECIOUS@'.lstrip('/')).read()"),
    _leak("a file by a shell", _UNAUDITED + "return subprocess.run(['/bin/sh', '-c', 'cat @PRECIOUS@'], capture_output=True, text=True).stdout"),
    _leak("a file by a symbolic link", "os.symlink('@PRECIOUS@', 'link')\nreturn open('link').read()"),
    _leak("a file from inherited descriptors", "for fd in range(3, 1024):\n    try: return os.read(os.open('..@PRECIOUS@', os.O_RDONLY, dir_fd=fd), 99).decode()\n    except OSError: pass"),
    _leak("a file found by walking", "for folder, _, files in os.walk('/tmp'):\n    if 'precious' in files: return open(os.path.join(folder, 'precious')).read()"),
    _leak("shared memory", "return open('/dev/shm/@MARK@').read()"),
    _leak("a TCP server of this machine", "import _socket\nreturn socket.create_connection(('127.0.0.1', @TCP@), 1).recv(99).decode()"),
    _leak("a TCP server through a shell", _UNAUDITED + "return subprocess.run(['/bin/bash', '-c', 'cat < /dev/tcp/127.0.0.1/@TCP@'], capture_output=True, text=True, timeout=2).stdout"),
    _leak("an abstract Unix socket", "sock = socket.socket(socket.AF_UNIX)\nsock.connect('\\0@MARK@')\nreturn sock.recv(99).decode()"),
    _leak("the home folder", "import pwd\nreturn any(os.path.exists(os.path.join(entry.pw_dir, name)) for entry in pwd.getpwall() for name in ('.ssh', '.bashrc', '.profile') if entry.pw_dir.startswith(('/root', '/home')))", REACHED),
    _leak("the password file", "return bool(open('/etc/shadow').read())", REACHED),
    _leak("this program's source and database", "import importlib.machinery\nreturn os.path.exists('@PROJECT@')", REACHED),
    _leak("network interfaces", "return len([name for _, name in socket.if_nameindex() if name != 'lo']) > 0", REACHED),
    _leak("the name of the machine's processes", "return any('@MARK@' in open(name).read() for name in glob.glob('/proc/[0-9]*/cmdline'))", REACHED),
)  # fmt: skip

TRACES = (
    _trace("a file written by its path", "open('@FOLDER@/new', 'w').write('x')"),
    _trace("a file overwritten", "open('@PRECIOUS@', 'w').write('x')"),
    _trace("a file removed", "os.remove('@PRECIOUS@')"),
    _trace("a file removed by a descriptor of its folder", "os.remove('precious', dir_fd=os.open('@FOLDER@', os.O_RDONLY))"),
    _trace("a file made by a descriptor of its folder", "os.open('new', os.O_CREAT | os.O_WRONLY, dir_fd=os.open('@FOLDER@', os.O_RDONLY))"),
    _trace("a file renamed by descriptors of its folder", "folder = os.open('@FOLDER@', os.O_RDONLY)\nos.rename('precious', 'other', src_dir_fd=folder, dst_dir_fd=folder)"),
    _trace("a link made by a descriptor of its folder", "os.symlink('precious', 'other', dir_fd=os.open('@FOLDER@', os.O_RDONLY))"),
    _trace("a folder made by a descriptor of its folder", "os.mkdir('other', dir_fd=os.open('@FOLDER@', os.O_RDONLY))"),
    _trace("a file truncated by a descriptor", "os.truncate(os.open('precious', os.O_WRONLY, dir_fd=os.open('@FOLDER@', os.O_RDONLY)), 0)"),
    _trace("a pipe made", "os.mkfifo('@FOLDER@/pipe')"),
    _trace("a node made", "os.mknod('@FOLDER@/node')"),
    _trace("a database made", "import sqlite3\nwith sqlite3.connect('@FOLDER@/new.db') as db: db.execute('create table t (x)')"),
    _trace("a folder removed by a shell", _SHELL.format(command="rm -rf @FOLDER@/*")),
    _trace("a file written by a shell", _SHELL.format(command="echo x > @FOLDER@/new")),
    _trace("rights changed by a shell", _SHELL.format(command="chmod 777 @PRECIOUS@")),
    _trace("shared memory written", "open('/dev/shm/@MARK@-new', 'w').write('x')"),
    _trace("a datagram sent with sendto", "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', @UDP@))"),
    _trace("a datagram sent with sendmsg", "socket.socket(type=socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, ('127.0.0.1', @UDP@))"),
    _trace("a datagram sent by a shell", _UNAUDITED + "subprocess.run(['/bin/bash', '-c', 'echo x > /dev/udp/127.0.0.1/@UDP@'], timeout=2)"),
    _trace("a connection made", "socket.create_connection(('127.0.0.1', @TCP@), 1).send(b'x')"),
    _trace("a connection to a Unix socket made", "socket.socket(socket.AF_UNIX).connect('@SOCKET@')"),
    _trace("a process of another killed", "os.kill(@VICTIM@, 9)"),
    _trace("a process of another killed by a descriptor", "import signal\nsignal.pidfd_send_signal(os.pidfd_open(@VICTIM@), 9)"),
    _trace("a process of another killed by a shell", _SHELL.format(command="kill -9 @VICTIM@")),
    _trace("a daemon left by fork", "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: os.execv('/bin/sh', ['sh', '-c', 'exec sleep 60 # @MARK@', '@MARK@'])\n    os._exit(0)"),
    _trace("a daemon left by a shell", _UNAUDITED + "subprocess.Popen(['/bin/sh', '-c', 'sleep 60; : @MARK@-daemon'], start_new_session=True, env={})"),
    _trace("many processes left", _UNAUDITED + "for _ in range(30): subprocess.Popen(['/bin/sh', '-c', 'sleep 60; : @MARK@-many'], start_new_session=True)"),
    _trace("a process left by posix_spawn", "os.posix_spawn('/bin/sh', ['sh', '-c', 'sleep 60; : @MARK@-spawn'], {}, setsid=True)"),
)  # fmt: skip

ESCAPES = (*CLAIMS, *LEAKS, *TRACES)


class Outside:
    """What the escapes aim at: files, servers, processes and secrets of this machine, all of them decoys."""

    def __init__(self) -> None:
        self.mark = f"assay-escape-{secrets.token_hex(6)}"
        self.secret = secrets.token_hex(12)
        self._received: list[str] = []

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="assay-outside-"))
        self.shared = Path("/dev/shm", self.mark)
        self.shared.write_text(self.secret)
        os.environ["CANARY_API_KEY"] = self.secret
        environment = {**os.environ, "CANARY_API_KEY": self.secret}
        self._victim = self._start_victim(environment)
        self._udp = socket.socket(type=socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", 0))
        self._udp.setblocking(False)
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self._abstract = socket.socket(socket.AF_UNIX)
        self._abstract.bind("\0" + self.mark)
        self._abstract.listen()
        self._unix = socket.socket(socket.AF_UNIX)
        self.sockets = Path(tempfile.mkdtemp(prefix="assay-outside-"))
        self._unix.bind(str(self.sockets / "socket"))
        self._unix.listen()
        for server in (self._tcp, self._abstract, self._unix):
            threading.Thread(target=self._serve, args=(server,), daemon=True).start()
        self._renew()
        return self

    def __exit__(self, *_: object) -> None:
        for server in (self._tcp, self._abstract, self._unix):
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            server.close()
        self._udp.close()
        self._end_victim()
        self.shared.unlink(missing_ok=True)
        os.environ.pop("CANARY_API_KEY", None)
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.sockets, ignore_errors=True)

    def attempt(self, escape: Escape, **options: Any) -> tuple[Judgement, list[str]]:
        """Judge the program; what it got, and what it left outside."""
        scorer = make_scorer(ScorerUse("code", options={"partial": True, "seconds": 10, **options}))
        case = Case(escape.name, "", self._filled(escape.tests), metadata=escape.metadata)
        judgement = scorer.score(Judged(self._filled(escape.code), case.expected, case))
        assert isinstance(judgement, Judgement)
        return judgement, self.traces()

    def traces(self) -> list[str]:
        """What was changed, received or left running since the last look; it is put right again."""
        found = [*self._received, *self._changed_files(), *self._left_processes()]
        with contextlib.suppress(BlockingIOError):
            found += [f"a datagram: {self._udp.recv(99)!r}"]
        if self._victim.poll() is not None:
            found.append("a process was killed")
            self._end_victim()
            self._victim = self._start_victim(dict(os.environ))
        self._received = []
        self._renew()
        return found

    def _start_victim(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        # A process of the same user with the secret in its environment.
        return subprocess.Popen(
            ["/bin/sh", "-c", "read x", f"{self.mark}-victim"], stdin=subprocess.PIPE, env=environment
        )

    def _end_victim(self) -> None:
        self._victim.kill()
        self._victim.wait()
        if self._victim.stdin is not None:
            self._victim.stdin.close()

    def _filled(self, given: Any) -> Any:
        if isinstance(given, str):
            for name, value in self._values().items():
                given = given.replace(f"@{name}@", str(value))
            return given
        if isinstance(given, Mapping):
            return {key: self._filled(value) for key, value in given.items()}
        if isinstance(given, Sequence):
            return [self._filled(item) for item in given]
        return given

    def _values(self) -> dict[str, object]:
        return {
            "SECRET": self.secret,
            "MARK": self.mark,
            "FOLDER": self.folder,
            "PRECIOUS": self.folder / "precious",
            "SOCKET": self.sockets / "socket",
            "PARENT": os.getpid(),
            "VICTIM": self._victim.pid,
            "TCP": self._tcp.getsockname()[1],
            "UDP": self._udp.getsockname()[1],
            "PROJECT": Path(__file__).parents[2],
        }

    def _serve(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                self._received.append(f"a connection to {server.family.name}")
                with client:
                    client.sendall(self.secret.encode())

    def _changed_files(self) -> list[str]:
        names = {path.name for path in self.folder.iterdir()} if self.folder.exists() else set()
        found = [f"a change of {name}" for name in names ^ {"precious"}]
        precious = self.folder / "precious"
        if precious.exists() and (
            precious.read_text() != self.secret or precious.stat().st_mode & 0o777 != 0o600
        ):
            found.append("a change of precious")
        written = Path(f"{self.shared}-new")
        if written.exists():
            written.unlink()
            found.append("shared memory")
        return found

    def _renew(self) -> None:
        self.folder.mkdir(exist_ok=True)
        for path in self.folder.iterdir():
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        (self.folder / "precious").write_text(self.secret)
        (self.folder / "precious").chmod(0o600)

    def _left_processes(self) -> list[str]:
        """Of those that carry our mark, any that are still there half a second later."""
        until = time.monotonic() + 0.5
        while (left := self._marked()) and time.monotonic() < until:
            time.sleep(0.02)
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
        return [f"process {pid} left" for pid in left]

    def _marked(self) -> list[int]:
        found = []
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            with contextlib.suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                if self.mark.encode() in line and pid != self._victim.pid:
                    found.append(pid)
        return found
