# Sourced by conformance/test and conformance/soak: the fuzzer, built and run (conformance/fuzz).

FUZZ=$ROOT/conformance/fuzz

fuzz_build() {
    need g++ g++
    # Without a test, which could not be linked without libFuzzer: some dependencies have other features than those of tests.
    FUZZ_RUSTC_WRAPPER=${RUSTC_WORKSPACE_WRAPPER:-} RUSTC_WORKSPACE_WRAPPER=$FUZZ/rustc \
        cargo build --locked --workspace --features drydock-fuzz/libfuzzer --bin fuzz
}

fuzz_targets() { (cd "$FUZZ/seeds" && printf '%s\n' *); }

# fuzz_all FLAG...: every target with these flags of libFuzzer, two at a time; says how often each was executed.
fuzz_all() {
    local folder failed=0
    folder=$(mktemp -d)
    export -f fuzz_one say
    export FUZZ TARGET
    fuzz_targets | xargs -P 2 -I '{}' bash -c 'fuzz_one "$@"' fuzz_one "$folder" '{}' "$@" || failed=1
    rm -rf "$folder"
    return "$failed"
}

# fuzz_one FOLDER TARGET FLAG...: what it finds is kept in target/fuzz, and said how to try again.
fuzz_one() {
    local folder=$1 target=$2 found=$TARGET/fuzz/found log count seconds
    shift 2
    log=$folder/$target.log
    mkdir -p "$found" "$TARGET/fuzz/corpus/$target" "$folder/$target"
    if ! DRYDOCK_FUZZ_TARGET=$target TMPDIR=$folder/$target "$TARGET/debug/fuzz" -dict="$FUZZ/dictionary" \
        -timeout=10 -rss_limit_mb=1024 -artifact_prefix="$found/$target-" -print_final_stats=1 "$@" \
        "$TARGET/fuzz/corpus/$target" "$FUZZ/seeds/$target" >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        say "fuzz $target: a fault; keep its input (Test unit written to ...) in $FUZZ/seeds/$target when it is mended"
        return 1
    fi
    count=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    # Without instrumentation the fuzzer would try its inputs blindly.
    grep -q ' cov: [1-9]' "$log" || { say "fuzz $target: no coverage: the fuzzer is not instrumented"; return 1; }
    seconds=$(sed -n 's/^Done .* runs in \(.*\) second.*/\1/p' "$log")
    say "fuzz $target: $count executions in $seconds s, $(sed -n 's/.* \(cov: [0-9]*\) .*/\1/p' "$log" | tail -n 1)"
}
