# Sourced by lib/common.sh: the steps of a command, lanes of steps side by side, and the table of their seconds.

# step WHAT COMMAND...: runs the command, says what it is for and how long it took. The command's own steps fail by `die`
# or by its status: `set -e` is off in it.
step() {
    local what=$1 began=$SECONDS status=0
    shift
    [ -z "${LANE_LOG:-}" ] || STEP_AT=$(wc -c <"$LANE_LOG")
    say "$what"
    if [ -n "${STEPS:-}" ]; then
        timed "$what" "$@" || status=$?
    else
        "$@" || status=$?
    fi
    [ "$status" = 0 ] || die "$what: failed after $((SECONDS - began)) s"
    say "$what: done in $((SECONDS - began)) s"
}

# note_failure WORDS: keeps the words for `what_failed`, and what the lane has printed since its last step began.
note_failure() {
    [ -d "${STEPS:-}" ] || return 0
    local failure
    failure=$(mktemp "$STEPS/failure.XXXXXX")
    printf '%s\n' "$*" >"$failure"
    [ -z "${LANE_LOG:-}" ] || tail -c "+$((${STEP_AT:-0} + 1))" "$LANE_LOG" >>"$failure"
}

# what_failed: says again what failed, with the lines that tell why: they may be far up, before the output of other lanes.
what_failed() {
    local failure why
    for failure in "$STEPS"/failure.*; do
        [ -e "$failure" ] || continue
        say "failed: $(head -n 1 "$failure")"
        why=$(tail -n +2 "$failure" | grep -a -A 4 -E ' FAILED|panicked at|HARM|FAULT|^ *([Ee]rror(\[|:)|Caused by)') \
            || why=$(tail -n +2 "$failure")
        [ -z "$why" ] || tail -n 60 <<<"$why" | cut -c 1-400 >&2
    done
}

# keep_times: from here on each step is a row of the table.
keep_times() {
    STEPS=$(mktemp -d)
    # Whatever a step leaves behind goes with it.
    mkdir "$STEPS/tmp"
    export TMPDIR=$STEPS/tmp
}

# timed WHAT COMMAND...: runs the command and adds its row.
timed() {
    local what=$1 began=$SECONDS status=0 notes
    shift
    notes=$(mktemp -d "$STEPS/step.XXXXXX")
    # Not in a subshell: `times` counts the children of the shell that it runs in.
    times >"$notes/before"
    DRYDOCK_CPU_LOG=$notes/ended "$@" || status=$?
    times >"$notes/after"
    printf '%s\t%s\t%s\n' "$what" $((SECONDS - began)) "$notes" >>"$STEPS/steps"
    return "$status"
}

# cpu_seconds FOLDER: the CPU seconds between the two outputs of `times`, whose last line has those of the children, and
# the seconds of processes that nobody waited for: whoever kills them adds their lines of /proc/PID/stat to `ended`.
cpu_seconds() {
    touch "$1/ended"
    { tail -n 1 "$1/before"; tail -n 1 "$1/after"; cat "$1/ended"; } \
        | awk -v ticks="$(getconf CLK_TCK)" '
            function seconds(time,  parts) { split(time, parts, /[ms]/); return parts[1] * 60 + parts[2] }
            NR <= 2 { sum += (NR == 1 ? -1 : 1) * (seconds($1) + seconds($2)); next }
            # The name of the program may have spaces. Fields 14 to 17 are its own time and that of its children.
            { sub(/.*\) /, ""); sum += ($12 + $13 + $14 + $15) / ticks }
            END { printf "%.0f", sum }'
}

# side_by_side COMMAND...: runs commands of steps at the same time, each a lane; the words of one are split at spaces. What
# `say` prints is shown at once, the other output of a lane when the lane has ended. Fails after all have ended, if one failed.
side_by_side() {
    local command pid failed=0
    LANES_RUN=()
    # Each lane is a process group, which Ctrl-C reaches through this shell alone.
    set -m
    for command in "$@"; do
        lane "$command" </dev/null &
        LANES_RUN+=($!)
    done
    set +m
    trap 'end_lanes; exit 130' INT TERM
    for pid in "${LANES_RUN[@]}"; do
        wait "$pid" || failed=1
    done
    trap - INT TERM
    return "$failed"
}

end_lanes() {
    local pid
    for pid in "${LANES_RUN[@]}"; do kill -TERM -- "-$pid" 2>/dev/null || true; done
    wait
}

# lane COMMAND: runs it with its output in a file, which is shown at the end, also when `die` ended it. It leaves the
# descriptors changed: it is run in a subshell.
lane() {
    local log
    log=$(mktemp)
    exec 4>&2 >"$log" 2>&1
    # What `say` prints passes the logs of lanes around this one, and so does what scripts that are run say.
    if [ -z "${SAY:-}" ]; then
        export SAY=3
        exec 3>&4
    fi
    LANE_LOG=$log STEP_AT=0
    # shellcheck disable=SC2064
    trap "cat '$log' >&4; rm -f '$log'" EXIT
    # shellcheck disable=SC2086
    $1
}

# table_of_steps [FILE]: prints what each step took, and the sum; with a file, keeps the table there too.
table_of_steps() {
    local what wall notes
    [ -s "$STEPS/steps" ] || return 0
    while IFS=$'\t' read -r what wall notes; do
        printf '%s\t%s\t%s\n' "$what" "$wall" "$(cpu_seconds "$notes")"
    done <"$STEPS/steps" | awk -F '\t' -v whole="$SECONDS" -v cores="$(getconf _NPROCESSORS_ONLN)" '
        BEGIN { printf "%-64s %7s %7s\n", "step", "wall s", "CPU s" }
        { printf "%-64s %7d %7d\n", $1, $2, $3; cpu += $3 }
        END { printf "%-64s %7d %7d\n", "in all, on " cores " processors", whole, cpu }' | tee ${1:+"$1"} >&2
}
