#!/bin/sh
# The main job, offline and without a key: agents go through a suite, then leaderboard, comparison and report.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${DEMO_DIR:-demo}
mkdir -p "$folder"
cd "$folder"
export ASSAY_DB="sqlite:///$(pwd)/assay.db"

if [ -t 1 ]; then say() { printf '\n\033[1m%s\033[0m\n' "$1"; }; else say() { printf '\n%s\n' "$1"; }; fi

say '1. Three real agents and a simulated one go through 110 puzzles, three times each'
assay run "$here/puzzles/puzzles.yaml" --seed 42

say '2. Who leads, and who is really apart?'
assay leaderboard --quiet

say '3. Is the exact solver better than the greedy one, or is it noise?'
assay compare greedy exact --metric score --metric seconds --quiet

say '4. One file with everything in it'
assay report last --format html --out report --quiet

say 'Next'
cat <<TEXT
  open $(pwd)/report/report.html in a browser, then:
  export PATH=$(dirname "$(command -v assay)"):\$PATH ASSAY_DB=$ASSAY_DB
  assay show last
  assay compare moody exact
  assay suite check $here/puzzles/puzzles.yaml
TEXT
