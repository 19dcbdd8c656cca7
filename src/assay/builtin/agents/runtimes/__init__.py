"""One client agent on several runtimes, as programs that speak JSON lines: `client.py` and `client.c` do the same."""
