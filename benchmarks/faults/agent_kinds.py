"""Agents that misbehave, each with the statuses that its bad execution may get.

Every agent is asked three cases, "before", "bad" and "after", and repeats its input, except that it misbehaves when asked
"bad". Bodies are Python; the same body serves several kinds of agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

FAILED = frozenset({"failed"})
CRASHED = frozenset({"crashed"})
TIMEOUT = frozenset({"timeout"})
INVALID = frozenset({"invalid_output"})
WRONG = frozenset({"ok", "invalid_output", "failed", "over_limit"})
"""For odd outputs: kept, and then scored 0, or refused."""
FINE = frozenset({"ok"})
OWN = frozenset({"ok", "failed", "crashed", "invalid_output", "timeout", "over_limit"})
"""For agents that damage their own process: any end that is put down to the agent."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One agent that misbehaves."""

    name: str
    way: str
    """plain, async, stream, lines, once or http."""
    body: str
    statuses: frozenset[str]
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    is_whole_after: bool = True
    """Whether the case after the bad one must be right: not where an agent damages its own process for good."""


_RAISES = {
    "ValueError": "raise ValueError('boom')",
    "an empty AssertionError": "raise AssertionError",
    "10 MB of text": "raise ValueError('x' * 10_000_000)",
    "text with NUL and ESC": "raise ValueError('a\\x00b\\x1b[31m\\x9b')",
    "lone surrogates": "raise ValueError('\\ud800\\udfff')",
    "an error that cannot be printed": "raise Unprintable",
    "an error that cannot be pickled": "raise Unpicklable(lambda: 1)",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "SystemExit 0": "raise SystemExit(0)",
    "SystemExit 4": "sys.exit(4)",
    "SystemExit with text": "sys.exit('bye')",
    "GeneratorExit": "raise GeneratorExit",
    "CancelledError": "raise asyncio.CancelledError",
    "its own BaseException": "raise Own('mine')",
    "StopIteration": "raise StopIteration('x')",
    "StopAsyncIteration": "raise StopAsyncIteration",
    "endless recursion": "def again(): again()\n    again()",
    "MemoryError": "raise MemoryError",
    "BrokenPipeError": "raise BrokenPipeError(32, 'gone')",
    "no space left": "raise OSError(28, 'No space left on device')",
    "a group of errors": "raise ExceptionGroup('several', [ValueError(1), KeyError('2')])",
    "a group with CancelledError": "raise BaseExceptionGroup('several', [asyncio.CancelledError(), ValueError(1)])",
    "an error that is its own cause": "error = ValueError('loop'); error.__cause__ = error; raise error",
    "an error of Assay": "import assay.errors; raise assay.errors.AssayError('mine')",
    "TimeoutError": "raise TimeoutError('mine')",
}
_DIES = {
    "os._exit(0)": "os._exit(0)",
    "os._exit(3)": "os._exit(3)",
    "SIGKILL": "os.kill(os.getpid(), 9)",
    "SIGSEGV": "ctypes.CDLL(None).prctl(4, 0); ctypes.string_at(0)",
    "SIGTERM": "signal.signal(15, signal.SIG_DFL); os.kill(os.getpid(), 15); time.sleep(600)",
    "abort": "ctypes.CDLL(None).prctl(4, 0); os.abort()",
    "exit of a thread": "threading.Timer(0.01, os._exit, (5,)).start(); time.sleep(600)",
    "exec of another program": "os.execv('/bin/true', ['true'])",
    "all descriptors closed": "os.closerange(0, 4096)",
    "all descriptors closed, and a hang": "os.closerange(0, 4096); time.sleep(600)",
}
_HANGS = {
    "sleep": "time.sleep(600)",
    "busy loop": "while True: pass",
    "sleep in C with the interpreter's lock": "ctypes.PyDLL(None).sleep(600)",
    "SIGTERM and SIGINT ignored": "signal.signal(15, signal.SIG_IGN); signal.signal(2, signal.SIG_IGN); time.sleep(600)",
    "SIGSTOP": "os.kill(os.getpid(), 19)",
    "a lock that nobody frees": "lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "a child that is waited for": "subprocess.run(['sleep', '600'])",
}
_RETURNS = {
    "None": "return None",
    "an empty text": "return ''",
    "bytes": "return b'\\x00\\xff'",
    "NaN": "return float('nan')",
    "infinity": "return float('-inf')",
    "a whole number of 5,000 digits": "return 10 ** 5000",
    "an object": "return object()",
    "a class": "return int",
    "a function": "return print",
    "a set": "return {1, 2}",
    "a list that holds itself": "held = []; held.append(held); return held",
    "lists 100,000 deep": "held = []\n    for _ in range(100_000): held = [held]\n    return held",
    "NUL": "return 'a\\x00b'",
    "lone surrogates": "return '\\ud800'",
    "escape sequences": "return '\\x1b]0;title\\x07\\x1b[2J\\x9b31m'",
    "20 MB of text": "return 'x' * 20_000_000",
    "a million keys": "return {str(n): n for n in range(300_000)}",
    "keys that are no text": "return {1: 2, None: 3, (1, 2): 4}",
    "a text that lies": "return Liar('bad')",
    "an object that cannot be printed": "return Unprintable()",
    "an Answer without sense": "from assay.model import Answer; return Answer(3, 4, 5, 'x', 'y', 6)",
    "an error": "return {'output': 'x', 'error': 'quota exceeded'}",
    "an error that is no text": "return {'output': 'x', 'error': {'a': [1]}}",
    "an error of 10 MB": "return {'output': 'x', 'error': 'e' * 10_000_000}",
}
_REPORTS = {
    "negative tokens": "{'usage': {'input_tokens': -5, 'output_tokens': 1}}",
    "tokens that are NaN": "{'usage': {'input_tokens': float('nan'), 'output_tokens': 1}}",
    "10 ** 400 tokens": "{'usage': {'input_tokens': 10 ** 400, 'output_tokens': 1}}",
    "tokens as text": "{'usage': {'input_tokens': 'many'}}",
    "usage as a list": "{'usage': [1, 2]}",
    "unknown usage": "{'usage': {'bananas': 3}}",
    "negative usd": "{'usd': -3.0}",
    "infinite usd": "{'usd': float('inf')}",
    "usd as text": "{'usd': 'free'}",
    "a span before its start": "{'spans': [{'name': 'a', 'kind': 'llm', 'start': -1, 'seconds': 1}]}",
    "a span of NaN seconds": "{'spans': [{'name': 'a', 'kind': 'llm', 'start': 0, 'seconds': float('nan')}]}",
    "spans without a name": "{'spans': [{}]}",
    "20,000 spans": "{'spans': [{'name': 'a', 'kind': 'llm', 'start': 0, 'seconds': 0}] * 20_000}",
    "a span with 5 MB of name": "{'spans': [{'name': 'n' * 5_000_000, 'kind': 'llm', 'start': 0, 'seconds': 0}]}",
    "tool calls without sense": "{'tool_calls': [1, None]}",
    "tool calls with odd arguments": "{'tool_calls': [{'name': 'f', 'arguments': '{'}]}",
    "a model that is no text": "{'model': 7}",
    "a model of 1 MB": "{'model': 'm' * 1_000_000}",
    "negative durations": "{'durations': {'load': -2129.0}}",
    "durations without end": "{'durations': {'load': float('inf')}}",
    "a log of 10 MB": "{'log': 'l' * 10_000_000}",
    "a log that is no text": "{'log': {'a': 1}}",
}
_FLOODS = {
    "40 MB on standard output": "for _ in range(400): sys.stdout.write('x' * 99_999 + '\\n')",
    "40 MB on standard error": "for _ in range(400): sys.stderr.write('x' * 99_999 + '\\n')",
    "10 MB without a line end": "os.write(2, b'x' * 10_000_000)",
    "binary on standard output": "os.write(1, bytes(range(256)))",
    "escape sequences on standard error": "os.write(2, b'\\x1b]0;owned\\x07\\x1b[2J')",
    "closed standard streams": "os.close(0); os.close(1); os.close(2)",
    "sys.stdout set to None": "sys.stdout = sys.stderr = None; print('nobody hears')",
    "a closed sys.stdout": "sys.stdout.close()",
    "garbage for every descriptor": (
        "for name in os.listdir('/proc/self/fd'):\n"
        "        try: int(name) > 2 and os.write(int(name), b'{\"garbage\": [\\n')\n"
        "        except OSError: pass"
    ),
}
_DAMAGES = {
    "fork that returns twice": "os.fork()",
    "a daemon": "daemonise()",
    "a daemon without environment": "subprocess.Popen(['/bin/sh', '-c', 'echo $$ >> ' + HERE + '/pids; exec sleep 600'], env={}, start_new_session=True); time.sleep(0.2)",
    "a child left behind": "subprocess.Popen(['sleep', '600'])",
    "another working folder": "os.chdir('/')",
    "a working folder that is gone": "import tempfile; place = tempfile.mkdtemp(); os.chdir(place); os.rmdir(place)",
    "an empty environment": "os.environ.clear()",
    "a clock that goes back": "time.perf_counter = lambda: -1e9; time.perf_counter_ns = lambda: -10**18",
    "monotonic time patched": "time.monotonic = lambda: 0.0",
    "time.time patched": "time.time = lambda: -1.0",
    "json patched": "json.dumps = lambda *a, **k: '\"forged\"'; json.loads = lambda *a, **k: {}",
    "open patched": "builtins.open = None",
    "len deleted": "del builtins.len",
    "print patched": "builtins.print = lambda *a, **k: 1 / 0",
    "os.write patched": "os.write = lambda *a: 1 / 0",
    "no modules": "sys.modules.clear()",
    "an import hook that fails": "sys.meta_path[:] = []; sys.path[:] = []",
    "a recursion limit of 50": "sys.setrecursionlimit(50)",
    "a trace function": "sys.settrace(lambda *a: 1 / 0)",
    "no descriptors allowed": "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
    "files of no size allowed": "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
    "1,000 descriptors open": "held.extend(open('/dev/null') for _ in range(900))",
    "200 threads": "[threading.Thread(target=time.sleep, args=(600,), daemon=True).start() for _ in range(200)]",
    "a thread that is no daemon": "threading.Thread(target=time.sleep, args=(600,)).start()",
    "an exit handler that hangs": "import atexit; atexit.register(time.sleep, 600)",
    "signals ignored": "signal.signal(2, signal.SIG_IGN); signal.signal(15, signal.SIG_IGN)",
    "an alarm": "signal.setitimer(signal.ITIMER_REAL, 0.001); time.sleep(0.05)",
    "warnings as errors": "import warnings; warnings.simplefilter('error')",
    "the garbage collector off": "gc.disable()",
    "a umask of 0777": "os.umask(0o777)",
    "its own file emptied": "open(__file__, 'w').close()",
    "another locale": "os.environ['LC_ALL'] = 'xx_YY'",
}
_LOOPS = {
    "the loop stopped": "asyncio.get_running_loop().stop()",
    "all tasks cancelled": "[task.cancel() for task in asyncio.all_tasks()]; await asyncio.sleep(0)",
    "itself cancelled": "asyncio.current_task().cancel(); await asyncio.sleep(1)",
    "a task that raises": "asyncio.ensure_future(late()); await asyncio.sleep(0.01)",
    "a wait without end": "await asyncio.Event().wait()",
    "a wait that catches its cancellation": "while True:\n        try: await asyncio.sleep(600)\n        except asyncio.CancelledError: pass",
    "default executor shut down": "await asyncio.get_running_loop().shutdown_default_executor()",
}
_LINES = {
    "garbage": ("print('what?', flush=True)", INVALID),
    "a list": ("print('[1]', flush=True)", INVALID),
    "an empty line": ("print('', flush=True)", INVALID | TIMEOUT),
    "another id": ("say(id='77', output=1)", INVALID),
    "no id": ("say(output=1)", INVALID),
    "an id that is a list": ("say(id=[r['id']], output=1)", INVALID),
    "invalid UTF-8": ('os.write(1, b\'{"id": "2\\xff"}\\n\')', INVALID),
    "NaN": ("os.write(1, b'{\"id\": \"' + r['id'].encode() + b'\", \"output\": NaN}\\n')", INVALID),
    "deep nesting": ("os.write(1, b'[' * 100_000 + b'\\n')", INVALID),
    "half a line, then an exit": ("os.write(1, b'{\"id\": '); os._exit(0)", FAILED),
    "50 MB in one line": ("say(id=r['id'], output='x' * 50_000_000)", INVALID),
    "50 MB without a line end": ("os.write(1, b'x' * 50_000_000); time.sleep(600)", INVALID),
    "NUL bytes": ("os.write(1, b'\\x00' * 100 + b'\\n')", INVALID),
    "pieces that are no text": ("say(id=r['id'], delta=[])", INVALID),
    "pieces without end": (
        "while True: say(id=r['id'], delta='x' * 10_000)",
        INVALID | TIMEOUT | frozenset({"over_limit"}),
    ),
    "usage as a number": ("say(id=r['id'], output=1, usage=3)", INVALID),
    "an error": ("say(id=r['id'], error='quota exceeded')", FAILED),
    "an error of 10 MB": ("say(id=r['id'], error='e' * 10_000_000)", FAILED),
    "a key given twice": ('print(\'{"id": "%s", "output": 1, "output": 2}\' % r[\'id\'], flush=True)', WRONG),
    "lone surrogates": ('print(\'{"id": "%s", "output": "\\\\ud800"}\' % r[\'id\'], flush=True)', WRONG),
    "closed standard output": ("os.close(1); time.sleep(600)", FAILED),
    "closed standard input": ("os.close(0); say(id=r['id'], output=r['input'])", FINE),
    "an exit": ("os._exit(3)", FAILED),
    "SIGKILL": ("os.kill(os.getpid(), 9)", FAILED),
    "SIGSTOP": ("os.kill(os.getpid(), 19)", TIMEOUT),
    "a hang": ("time.sleep(600)", TIMEOUT),
    "a hang that ignores SIGTERM": ("signal.signal(15, signal.SIG_IGN); time.sleep(600)", TIMEOUT),
    "40 MB on standard error": (
        "[os.write(2, b'x' * 100_000) for _ in range(400)]; say(id=r['id'], output=r['input'])",
        FINE,
    ),
    "binary on standard error": ("os.write(2, bytes(range(256))); say(id=r['id'], output=r['input'])", FINE),
    "a second answer": ("say(id=r['id'], output=r['input']); say(id=r['id'], output='again')", FINE),
    "an answer byte by byte": (
        "for byte in json.dumps({'id': r['id'], 'output': r['input']}).encode() + b'\\n':\n            os.write(1, bytes([byte]))",
        FINE,
    ),
    "an exit after the answer": ("say(id=r['id'], output=r['input']); os._exit(0)", FINE),
    "a daemon": ("daemonise(); say(id=r['id'], output=r['input'])", FINE),
    "a child that keeps the pipe": ("subprocess.Popen(['sleep', '600']); os._exit(0)", FAILED),
    "the parent's group signalled": ("os.killpg(0, 1); time.sleep(600)", FAILED | CRASHED),
    "negative tokens": ("say(id=r['id'], output=r['input'], usage={'input_tokens': -5})", WRONG),
    "memory beyond the limit": ("held = bytearray(400_000_000); time.sleep(600)", frozenset({"over_limit"})),
}
_ONCE = {
    "no answer": ("pass", INVALID),
    "plain text": ("print('42')", INVALID),
    "an exit code": ("say(output=r['input']); sys.exit(2)", FAILED),
    "another id": ("say(id='9', output=1)", INVALID),
    "an error": ("say(error='broken')", FAILED),
    "SIGSEGV": ("ctypes.CDLL(None).prctl(4, 0); os.kill(os.getpid(), 11)", FAILED),
    "a hang": ("time.sleep(600)", TIMEOUT),
    "a child that keeps the pipe": ("subprocess.Popen(['sleep', '600']); say(output=r['input'])", FINE),
    "50 MB": ("os.write(1, b'x' * 50_000_000)", INVALID),
    "half an answer": ('os.write(1, b\'{"output": "ba\')', INVALID),
}
_HTTP = {
    "500": ("status(500)", FAILED),
    "404": ("status(404)", FAILED),
    "a redirect to itself": ("redirect()", FAILED | INVALID),
    "an empty body": ("body(b'')", INVALID | FAILED),
    "no JSON": ("body(b'{what')", INVALID | FAILED),
    "a list": ("body(b'[1]')", WRONG),
    "no output": ("body(b'{}')", INVALID | FAILED),
    "NaN": ("body(b'{\"output\": NaN}')", INVALID | FAILED),
    "deep nesting": ("body(b'[' * 100_000)", INVALID | FAILED),
    "50 MB": ("body(b'{\"output\": \"' + b'x' * 50_000_000 + b'\"}')", INVALID | FAILED),
    "invalid UTF-8": ('body(b\'{"output": "\\xff\\xfe"}\')', WRONG),
    "an error": ('body(b\'{"error": "quota exceeded"}\')', FAILED),
    "usage as a number": ('body(b\'{"output": "x", "usage": 3}\')', INVALID | FAILED),
    "a closed connection": ("close()", FAILED),
    "a hang": ("hang()", TIMEOUT),
    "half a body": ("half()", FAILED | INVALID),
    "headers without end": ("headers()", FAILED | INVALID | TIMEOUT),
}


def kinds() -> list[Kind]:
    return list(_python()) + list(_programs())


def _python() -> Iterator[Kind]:
    for way in ("plain", "async", "stream"):
        for name, body in _RAISES.items():
            statuses = FAILED | (TIMEOUT if name == "TimeoutError" else frozenset())
            yield Kind(f"raises {name}", way, body, statuses)
    for way in ("plain", "async"):
        for name, body in _DIES.items():
            yield Kind(f"dies of {name}", way, body, CRASHED)
        for name, body in _RETURNS.items():
            yield Kind(f"returns {name}", way, body, WRONG)
        for name, text in _REPORTS.items():
            yield Kind(f"reports {name}", way, f"return {{'output': 'bad', **{text}}}", WRONG)
    for name, body in _HANGS.items():
        yield Kind(f"hangs: {name}", "plain", body, TIMEOUT)
    for name, body in _FLOODS.items():
        yield Kind(f"floods: {name}", "plain", f"{body}\n    return 'bad'", OWN)
    for name, body in _DAMAGES.items():
        yield Kind(f"leaves {name}", "plain", f"{body}\n    return 'bad'", OWN, is_whole_after=False)
    for name, body in _LOOPS.items():
        yield Kind(f"loop: {name}", "async", f"{body}\n    return 'bad'", OWN, is_whole_after=False)
    yield Kind("takes memory beyond the limit", "plain", "held.append(bytearray(400_000_000)); time.sleep(600)", frozenset({"over_limit"}))  # fmt: skip
    yield Kind("returns a coroutine", "plain", "return late()", INVALID)
    yield Kind("returns a generator", "plain", "return (n for n in 'bad')", INVALID)


def _programs() -> Iterator[Kind]:
    for name, (body, statuses) in _LINES.items():
        yield Kind(f"writes {name}", "lines", body, statuses)
    for name, (body, statuses) in _ONCE.items():
        yield Kind(f"writes {name}", "once", body, statuses)
    for name, (body, statuses) in _HTTP.items():
        yield Kind(f"answers {name}", "http", body, statuses)
    yield Kind("listens nowhere", "http", "", FAILED, {"url": "http://127.0.0.1:9/"}, is_whole_after=False)
