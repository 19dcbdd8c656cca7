#!/bin/sh
# Run every test, two at a time. A test that fails is a failure: nothing is tried twice.
exec python -m pytest -q -n 2 "$@"
