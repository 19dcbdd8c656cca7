#!/bin/sh
# The main job, offline and without a key: agents go through a suite, then leaderboard, comparison and report.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${DEMO_DIR:-demo}
mkdir -p "$folder"
cd "$folder"
export ASSAY_DB="sqlite:///$(pwd)/assay.db"

if [ -t 1 ]; then ask() { printf '\n\033[1;36m%s\033[0m\n' "$1"; }; else ask() { printf '\n%s\n' "$1"; }; fi

ask '1. How good are three agents and a simulated one? 110 puzzles, 3 times each'
assay run puzzles --seed 42

assay baseline set demo last --quiet  # more runs follow

ask '2. Who leads, and which differences are real?'
assay leaderboard --quiet

ask '3. Is the exact solver better than the greedy one, or is it noise?'
assay compare greedy exact --metric score --quiet

ask '4. Everything in one HTML file'
assay report last --format html --out report --quiet

if [ "${DASHBOARD:-yes}" = yes ]; then
    ask '5. More results for the dashboard (one more minute)'
    DEMO_DIR=. sh "$here/dashboard/fill.sh"
fi

ask 'What next'
cat <<TEXT
  open $(pwd)/report/report.html
  export PATH=$(dirname "$(command -v assay)"):\$PATH ASSAY_DB=$ASSAY_DB
  assay show @demo                 # all figures of the run above
  assay matrix                     # every agent on five dimensions
  cd $(pwd) && assay serve         # the dashboard; or: make serve
TEXT
