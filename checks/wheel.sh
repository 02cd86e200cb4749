#!/usr/bin/env bash
# README's commands from a wheel, in a fresh venv and far from the checkout: checks/wheel.sh dist/*.whl
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
wheel=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
main=$("$here/.ci/readme-command" main)
bash -euo pipefail -c "${main//install ./install $wheel}"
bash -euo pipefail -c "$("$here/.ci/readme-command" story)"
.venv/bin/zoo parity --list >list.txt
head -n 3 list.txt
.venv/bin/python - <<'END'
import sys
import zoo
assert zoo.__file__.startswith(sys.prefix), zoo.__file__
assert not {"torch", "transformers"} & set(sys.modules)
print(zoo.__version__, zoo.load("zoo-read"))
END
