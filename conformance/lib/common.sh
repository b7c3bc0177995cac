# Sourced by the scripts of conformance/: where things are, how progress is said, what must be installed.

# Where CDPATH is set, cd says where it went.
ROOT=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
TARGET=${CARGO_TARGET_DIR:-$ROOT/target}
source "$ROOT/conformance/lib/steps.sh"
# What incremental builds keep takes gigabytes; these scripts build once.
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}

# say WORDS: a line of progress, on the descriptor SAY where a lane has one.
say() { printf '==> %s\n' "$*" >&"${SAY:-2}"; }
die() { printf 'error: %s\n' "$*" >&"${SAY:-2}"; note_failure "$*" || true; exit 1; }

# help_of FILE: the comment that the file begins with.
help_of() { sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p;}' "$1"; }

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

# need_version WHAT HAVE WANT WHERE: HAVE is at least WANT; both begin with MAJOR.MINOR.
need_version() {
    local what=$1 have=$2 want=$3 where=$4 have_major have_minor want_major want_minor rest
    IFS=. read -r have_major have_minor rest <<<"$have"
    IFS=. read -r want_major want_minor rest <<<"$want"
    if [ "$have_major" -gt "$want_major" ]; then return; fi
    if [ "$have_major" -eq "$want_major" ] && [ "${have_minor%%[!0-9]*}" -ge "${want_minor%%[!0-9]*}" ]; then return; fi
    die "$what $have is too old: $want or later is needed, from $where"
}

need_tools() {
    need cargo - https://rustup.rs
    need rustc - https://rustup.rs
    need_version Rust "$(rustc --version | cut -d' ' -f2)" \
        "$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$ROOT/Cargo.toml")" https://rustup.rs
    need go - https://go.dev/dl
    # From 1.21 on Go gets the version that go.mod asks for by itself.
    need_version Go "$(cd / && GOTOOLCHAIN=local go env GOVERSION | sed 's/^go//')" 1.21 https://go.dev/dl
    need gcc gcc
    need protoc protobuf-compiler protobuf
}

# go_build ARGUMENT...: `go build` without C and without what only debuggers read. All builds have these flags, so that Go
# compiles what they share once.
go_build() { CGO_ENABLED=0 go build -trimpath -buildvcs=false -gcflags=all=-dwarf=false "$@"; }

# need_component NAME: a command of cargo that minimal installations leave out.
need_component() {
    cargo "$1" --version >/dev/null 2>&1 || die "cargo $1 is missing: rustup component add ${2:-$1}"
}

# need_python_grpc: PYTHON is a Python that has gRPC.
need_python_grpc() {
    for PYTHON in python3 /usr/bin/python3; do
        if "$PYTHON" -c 'import google.protobuf, grpc' 2>/dev/null; then return; fi
    done
    need python3 python3
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null \
        || die "Python has no gRPC: pip install grpcio protobuf (Debian: apt-get install python3-grpcio python3-protobuf)"
    say "Python has no gRPC: installing Debian's packages python3-grpcio and python3-protobuf"
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy python3-grpcio python3-protobuf; } >&2 \
        || die "apt-get could not install python3-grpcio"
    PYTHON=/usr/bin/python3
}

# The host's binaries, built once.
host() {
    local began=$SECONDS
    if [ -z "${DRYDOCK_HOST_BIN:-}" ]; then
        DRYDOCK_HOST_BIN=$("$ROOT/conformance/host/build") || die "the host does not build"
        export DRYDOCK_HOST_BIN
        say "the host is in $DRYDOCK_HOST_BIN: done in $((SECONDS - began)) s"
    fi
    [ -x "$DRYDOCK_HOST_BIN/kube-apiserver" ] \
        || die "DRYDOCK_HOST_BIN: no kube-apiserver in $DRYDOCK_HOST_BIN; unset it, and the host is built"
}

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }
