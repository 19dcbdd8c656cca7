#!/bin/sh
# Run every test, in six processes: some wait while others compute (tests/parallel.py). A test that fails is a failure: nothing is tried twice.
# Python's own settings are those of whoever calls this: without bytecode every process would compile the tests anew, and a
# process with settings of its own cannot be forked from one that is there already (tests/forking.py).
for setting in $(env | sed -n 's/^\(PYTHON[A-Z0-9]*\)=.*/\1/p'); do unset "$setting"; done
exec python -m pytest -q --processes 6 "$@"
