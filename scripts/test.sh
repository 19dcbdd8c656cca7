#!/bin/sh
# Run every test, two at a time. Many use real processes, servers and clocks, which two at a time can starve on a small
# machine: what failed in company is tried once more alone, and only what fails alone as well is a failure.
python -m pytest -q -n 2 "$@"
code=$?
[ "$code" -eq 1 ] || exit "$code"
echo "Tried once more, one at a time:"
exec python -m pytest -q --last-failed --last-failed-no-failures none "$@"
