#!/usr/bin/env bash
# Lets the pod of a Job write a checkpoint before it is evicted, as checkpoint.rs does: checkpoint.sh NAMESPACE.
# It needs kubectl, and a clock that is right within 10 seconds. INTERVAL is the time between two looks, in seconds.
# All that it knows stands in the cluster, so that it may be restarted at any time.
set -euo pipefail

NAME=checkpoint.example.com
KUBECTL=(kubectl "--namespace=$1" --request-timeout=30s)
ANNOTATION=checkpoint.example.com

# A line for each open turn of ours: request, its UID, pod, last heartbeat (- if there is none), message. Names, UIDs and times
# are what the API server has checked. A message or an annotation may be any text: printf "%q" puts it in quotes and in one line,
# and the quoted text goes on as it is, into patches in YAML, which reads it so.
TURNS='{{range $request := .items}}{{if and .status.activeInterceptors (not .metadata.deletionTimestamp)}}'
TURNS+='{{if eq (index .status.activeInterceptors 0) "'$NAME'"}}{{range .status.interceptors}}'
TURNS+='{{if and (eq .name "'$NAME'") (not .completionTime)}}'
TURNS+='{{$request.metadata.name}} {{$request.metadata.uid}} {{$request.spec.target.pod.name}} '
TURNS+='{{or .heartbeatTime "-"}} {{printf "%q" (or .message "")}}{{"\n"}}{{end}}{{end}}{{end}}{{end}}{{end}}'
# The UID of a pod, whether it is done, and its progress. It has annotations: one of them names the interceptor.
POD='{{.metadata.uid}} {{if index .metadata.annotations "'$ANNOTATION/done'"}}done{{else}}-{{end}} '
POD+='{{printf "%q" (or (index .metadata.annotations "'$ANNOTATION/progress'") "")}}'

main() {
    local turns request uid pod beat message
    declare -A open=() seen
    while true; do
        if turns=$("${KUBECTL[@]}" get evictionrequests --output=go-template="$TURNS"); then
            seen=()
            while read -r request uid pod beat message; do
                [ -n "$request" ] || continue
                seen[$request]=1
                serve "$request" "$uid" "$pod" "$beat" "$message" || say "$request: that failed; it is tried again"
            done <<<"$turns"
            for request in "${!open[@]}"; do
                [ -n "${seen[$request]:-}" ] || say "$request: the turn is over"
            done
            open=()
            for request in "${!seen[@]}"; do open[$request]=1; done
        fi
        sleep "${INTERVAL:-5}"
    done
}

# serve REQUEST UID POD HEARTBEAT MESSAGE: takes the next step of a turn.
serve() {
    local request=$1 uid=$2 pod=$3 beat=$4 message=$5 now found pod_uid is_done progress
    now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
    found=$("${KUBECTL[@]}" get pod "$pod" --ignore-not-found --output=go-template="$POD") || return 1
    read -r pod_uid is_done progress <<<"$found"
    if [ "$beat" = - ]; then
        if [ "$pod_uid" = "$request" ]; then
            "${KUBECTL[@]}" annotate pod "$pod" --overwrite "$ANNOTATION/requested=true" >/dev/null || return 1
        fi
        say "$request: it begins"
        report 'startTime: "'"$now"'", heartbeatTime: "'"$now"'", message: waiting for the pod to write a checkpoint'
    elif [ "$pod_uid" != "$request" ]; then
        report 'completionTime: "'"$now"'", message: the pod is gone'
    elif [ "$is_done" != - ]; then
        report 'completionTime: "'"$now"'", message: checkpoint written'
    elif [ "$progress" != '""' ] && [ "$progress" != "$message" ]; then
        report "message: $progress$(heartbeat 60)"
    elif [ -n "$(heartbeat 180)" ]; then
        report "message: $message$(heartbeat 180)"
    fi
}

# heartbeat SECONDS: the field, if the last heartbeat is as old.
heartbeat() {
    if [ $(($(date -d "$now" +%s) - $(date -d "$beat" +%s))) -ge "$1" ]; then
        printf ', heartbeatTime: "%s"' "$now"
    fi
}

# report FIELDS: changes these fields of our entry, in YAML, which kubectl takes for JSON when it begins with a brace. With the
# UID, no other request of this name is changed.
report() {
    "${KUBECTL[@]}" patch evictionrequest "$request" --subresource=status --patch \
        'metadata: {uid: "'"$uid"'"}'$'\n''status: {interceptors: [{name: "'$NAME'", '"$1"'}]}' >/dev/null
}

say() {
    echo "$*" >&2
}

main
