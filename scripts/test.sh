#!/bin/sh
# Run every test, four at a time: some wait while others compute. A test that fails is a failure: nothing is tried twice.
# Each process takes a run of neighbouring tests, which share what their file prepares, and then helps the others.
# Without bytecode every process would compile the tests anew, so it is written whatever the environment asks for.
unset PYTHONDONTWRITEBYTECODE
exec python -m pytest -q -n 4 --dist worksteal "$@"
