#!/bin/sh
# Compiles the agents whose compilers are here and work, into the folder `build`.
set -eu
cd "$(dirname "$0")"
mkdir -p build

works() {
    "$@" --version > /dev/null 2>&1
}

if works "${CC:-cc}"; then
    "${CC:-cc}" -O2 -Wall -Wextra -o build/adder-c adder.c && echo "built build/adder-c" ||
        echo "adder.c cannot be compiled here: the agent 'c' is left out"
else
    echo "no C compiler: the agent 'c' is left out"
fi
if works rustc; then
    rustc -O -o build/adder-rust adder.rs && echo "built build/adder-rust" ||
        echo "adder.rs cannot be compiled here: the agent 'rust' is left out"
else
    echo "no Rust compiler: the agent 'rust' is left out"
fi
