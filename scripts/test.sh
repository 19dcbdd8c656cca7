#!/bin/sh
# Run every test, six files at a time: some wait while others compute (tests/lanes.py). A test that fails is a failure: nothing is tried twice.
# Without bytecode every process would compile the tests anew, so it is written whatever the environment asks for.
unset PYTHONDONTWRITEBYTECODE
exec python -m pytest -q -n 6 --dist loadfile "$@"
