#!/bin/sh
# The main job, offline: measure, show, compare, report. Leaves everything in a folder of its own.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${DEMO_DIR:-demo}
mkdir -p "$folder"
cd "$folder"
export ASSAY_DB="sqlite:///$(pwd)/assay.db"

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
[ -t 1 ] || say() { printf '\n%s\n' "$1"; }

say '1. Run a sweep: three sorting algorithms, two sizes, ten fresh processes each'
assay run "$here/sorting/sorting.yaml" --quiet
assay baseline set demo last --quiet

say '2. The same again with another seed: has anything changed?'
assay run "$here/sorting/sorting.yaml" --seed 7 --quiet >/dev/null
assay compare @demo last --metric seconds --quiet

say '3. Documents'
assay report last --format html,md,json --out report --quiet

say 'Next, from the folder '"$folder"':'
cat <<TEXT
  open report/report.html in a browser
  ASSAY_DB=$ASSAY_DB assay show last
  assay init my-project
TEXT
