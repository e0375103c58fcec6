#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages of a list that are missing; does nothing, and needs no rights, when none is.
# usage: scripts/install_packages.sh LIST...   (one package per line, # starts a comment)
set -euo pipefail

packages=$(sed 's/#.*//' "$@" | xargs)

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "note: this is no Debian system, so no package is installed. Needed, by their Debian names: $packages" >&2
  exit 0
fi

missing=()
for package in $packages; do
  # Virtual packages are not used in the lists, so the status line says it all.
  if [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
    missing+=("$package")
  fi
done
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "error: missing packages: ${missing[*]}" >&2
    echo "Installing them needs root, or sudo, and there is neither. As root:" >&2
    echo "  apt-get update && apt-get install ${missing[*]}" >&2
    exit 4
  fi
  as_root=(sudo)
fi

echo "installing: ${missing[*]}" >&2
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600)
"${apt[@]}" update
"${apt[@]}" install -y --no-install-recommends "${missing[@]}"
