#!/bin/sh
# After demo.sh: everything else that the dashboard shows, about a minute of work. Then: cd demo && assay serve
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${DEMO_DIR:-demo}
mkdir -p "$folder"
cd "$folder"
export ASSAY_DB="sqlite:///$(pwd)/assay.db"
cat > assay.toml <<TOML
[assay]
db = "$ASSAY_DB"
agents = ["$here/agents.yaml"]
suites = ["$here/../puzzles/puzzles.yaml"]
TOML

# A command whose answer is "found something" ends with 1, which is no failure here.
quietly() {
    "$@" >fill.log 2>&1 && return
    code=$?
    [ "$code" -eq 1 ] || { cat fill.log >&2; exit "$code"; }
}
tell() { printf '  %s\n' "$1"; }

tell 'a baseline, and version 2 of the agents'
assay baseline set main last --quiet
quietly assay run "$here/next_version.yaml"
quietly assay regressions moody
quietly assay regressions greedy
quietly assay regressions exact
quietly assay gate last --baseline main
quietly assay label last fail --agent greedy --case tour-01
quietly assay label last pass --agent greedy --case change-00
tell 'two agents as a team, and a profile'
quietly assay team "$here/team.yaml"
quietly assay profile exact --suite puzzles --no-memory --repetitions 2
tell 'a load test and a stress test'
quietly assay load exact --dataset "$here/../puzzles/puzzles.yaml" --concurrency 2 --duration 3s --warmup 1s
quietly assay stress exact --quick --scenario high_load --scenario spike_load --base 50 --dataset "$here/../puzzles/puzzles.yaml"
rm -f fill.log
