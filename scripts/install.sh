#!/usr/bin/env bash
# Makes a virtual environment and installs specwb into it, editable, with the engine and the development tools.
# Usage: install.sh PYTHON VENV CLEAR [pip options]; a CLEAR that is not empty replaces a VENV that works. Run by make.
set -euo pipefail

python=$1 venv=$2 clear=$3
shift 3

stop() {
    printf 'specwb: %s\n' "$1" >&2
    printf '        %s\n' "${@:2}" >&2
    exit 1
}

readonly debian="On Debian or Ubuntu: apt-get install make python3-venv"

check_version() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' ||
        stop "$1 is $("$1" -V 2>&1), but Python 3.11, 3.12 or 3.13 is needed." \
            "Name one that you have, like this: make PYTHON=python3.12 test"
}

# The scripts in an environment name the folder that it was made in, so a moved one is of no use either.
works() {
    "$venv/bin/python" -c '' 2>/dev/null && grep -qsF "$(pwd -P)/$venv/bin/python" "$venv/bin/pip"
}

if [[ -n $clear ]] || ! works; then
    command -v "$python" >/dev/null || stop "there is no $python here." "$debian" \
        "Or name a Python 3.11, 3.12 or 3.13 that you have: make PYTHON=/path/to/python test"
    check_version "$python"
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        stop "$python cannot make a virtual environment: its venv or ensurepip module is missing." "$debian"
    echo "specwb: making $venv with $("$python" -V)"
    "$python" -m venv --clear "$venv"
fi
check_version "$venv/bin/python"

echo "specwb: installing into $venv; torch is the large part of it"
install() {
    "$venv/bin/python" -m pip install --disable-pip-version-check --quiet --constraint constraints.txt "$@" ||
        stop "the installation failed; pip says why above." \
            "It needs a network, this once. pip's own options (an index, a proxy) go in PIP_ARGS:" \
            "make PIP_ARGS='--find-links FOLDER' test"
}
# The build backend comes first and from the constraints too, which a build environment of pip's own would not heed.
install "$@" hatchling
install "$@" --no-build-isolation --editable '.[engine,dev]'
