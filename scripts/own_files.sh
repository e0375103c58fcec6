#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Prints the C++ files of this repository, one per line, tracked or new.
# usage: scripts/own_files.sh [PATTERN...]   (default: '*.cpp' '*.hpp' '*.cu')
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
  set -- '*.cpp' '*.hpp' '*.cu'
fi
git ls-files --cached --others --exclude-standard -- "$@" | while IFS= read -r file; do
  if [ -e "$file" ]; then
    echo "$file"
  fi
done
