#!/bin/sh
# Print the path of a Python >= 3.12, newest first; say what to do when there is none.
# Looks on PATH and among pyenv's versions, selected or not.
fits() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12) or sys.implementation.name != "cpython")' >/dev/null 2>&1
}
# 3.12 first: the version every test runs on
for name in python3.12 python3.13 python3 python3.14; do
    for candidate in $(command -v "$name" 2>/dev/null) "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"${name#python}"*/bin/python; do
        if [ -x "$candidate" ] && fits "$candidate"; then
            echo "$candidate"
            exit 0
        fi
    done
done
cat >&2 <<'MESSAGE'
headwater needs CPython 3.12 or newer (with the venv module), and none was found on PATH or under pyenv.
Install one and run make again, for example:
    apt-get install python3.12 python3.12-venv     (Ubuntu 24.04; Debian 13 has python3.13)
    pyenv install 3.12
or name yours: make PYTHON=/path/to/python3.12
MESSAGE
exit 1
