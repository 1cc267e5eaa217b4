#!/usr/bin/env bash
# Installs what the drills need on Debian 12 / Ubuntu 24.04 (or newer), and nothing that is already there.
#   ./setup.sh         for learners
#   ./setup.sh --grade also what `drill grade` needs, for instructors
#   ./setup.sh --ci    also clang and the checkers that .ci/run uses
# The CUDA Toolkit is never installed: without it the emulator runs the same kernels on the CPU.
set -euo pipefail

packages=(g++ cmake ninja-build git ca-certificates binutils
          libgtest-dev libcli11-dev nlohmann-json3-dev libboost-context-dev)
grade_packages=(libtomlplusplus-dev bubblewrap unzip zip util-linux procps)
ci_packages=(clang clang-format clang-tidy gdb cmark-gfm source-highlight chromium
             libxml2-utils python3-jsonschema python3-junitparser)  # readers of reports, for CI only

case "$OSTYPE" in
  linux*) ;;
  *) echo "setup: this runs on Linux only, which may be a virtual machine, a container or WSL2. See README.md." >&2; exit 1 ;;
esac
case "${1:-}" in
  "") ;;
  --grade) packages+=("${grade_packages[@]}") ;;
  --ci) packages+=("${grade_packages[@]}" "${ci_packages[@]}") ;;
  *) echo "usage: ./setup.sh [--grade | --ci]" >&2; exit 2 ;;
esac

if ! command -v apt-get >/dev/null 2>&1; then
  cat <<'TEXT'
setup: there is no apt-get here. Please install by hand, then run ./drill doctor:
  a C++20 compiler (g++ 12 or newer, or clang 14 or newer), CMake 3.25 or newer, Ninja, git, binutils,
  GoogleTest, CLI11, nlohmann-json, Boost.Context (development packages)
and for drill grade: toml++, bubblewrap, unzip
TEXT
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing+=("$package")
done

if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: everything is installed (${#packages[@]} packages). Next: ./drill"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null 2>&1; then
    echo "setup: these packages are missing, and neither root nor sudo is at hand to install them:" >&2
    echo "  apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup: installing ${#missing[@]} packages with apt-get: ${missing[*]}"
log=$(mktemp)
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1
}
# An old package list is the usual reason for a failure: fetch a new one and try once more.
if ! install; then
  "${as_root[@]}" apt-get update >>"$log" 2>&1 || true
  if ! install; then
    tail -n 20 "$log" >&2
    echo "setup: apt-get failed; the whole log is $log" >&2
    exit 1
  fi
fi
rm -f "$log"
echo "setup: done. Next: ./drill"
