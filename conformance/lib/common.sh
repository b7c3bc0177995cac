# Sourced by the scripts of conformance/: where things are, how progress is said, what must be installed.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TARGET=${CARGO_TARGET_DIR:-$ROOT/target}

say() { printf '==> %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# step WHAT COMMAND...: runs the command, saying what it is for and how long it took.
step() {
    local what=$1 began=$SECONDS
    shift
    say "$what"
    "$@" || die "$what: failed after $((SECONDS - began)) s"
    say "$what: done in $((SECONDS - began)) s"
}

# need COMMAND PACKAGE [WHERE]: the command is there, or Debian's package is installed, or we say what to do.
need() {
    command -v "$1" >/dev/null && return
    if [ "$2" != - ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "$1 is missing: installing Debian's package $2"
        { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy "$2"; } >&2 \
            || die "$1 is missing and apt-get could not install $2"
        return
    fi
    if [ "$2" = - ]; then
        die "$1 is missing: install it from $3 and run this again"
    fi
    die "$1 is missing: install it (Debian: apt-get install $2; macOS: brew install ${3:-$2}) and run this again"
}

need_tools() {
    need cargo - https://rustup.rs
    need go - https://go.dev/dl
    need gcc gcc
    need protoc protobuf-compiler protobuf
}

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }
