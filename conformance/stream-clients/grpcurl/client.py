"""Follows the drain of one maintenance by grpcurl, which knows the service by reflection alone, prints it as it goes, and ends
when the maintenance has been deleted.

    python3 client.py GRPCURL ADDRESS CA_FILE SERVER_NAME TOKEN_FILE MAINTENANCE
"""
import json
import subprocess
import sys

SERVICE = "drydock.status.v1alpha1.StatusService"


def main(grpcurl, address, ca, server, token, name):
    command = [grpcurl, "-cacert", ca, "-authority", server, "-emit-defaults",
               "-H", f"authorization: Bearer {open(token).read().strip()}"]
    services = subprocess.run([*command, address, "list"], check=True, text=True, stdout=subprocess.PIPE).stdout
    if SERVICE not in services.split():
        sys.exit(f"reflection does not list {SERVICE}: {services}")
    command += ["-d", json.dumps({"maintenance": name}), address, f"{SERVICE}/WatchMaintenances"]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as watch:
        last = {}
        for response in objects(watch.stdout):
            if "updated" in response:
                last = response["updated"]
                print(f"{last['name']} {last['stage']}: {last['podsPending']} pending, {last['podsEvicting']} evicting, "
                      f"{last['blocked']} blocked; {last['drainedNodes']} of {last['nodes']} nodes drained", flush=True)
            elif "removed" in response:
                watch.terminate()
                o, left = last["outcomes"], last["podsPending"] + last["podsEvicting"]
                print(f"final evicted={o['evicted']} canceled={o['canceled']} passed_over={o['passedOver']} "
                      f"returned={o['returned']} drained_nodes={last['drainedNodes']} left={left}")
                return
    sys.exit(f"the stream ended early: grpcurl exited with {watch.returncode}")


def objects(lines):
    """The JSON objects that grpcurl prints, one after the other, each as soon as its last line is there."""
    text = ""
    for line in lines:
        text += line
        if line == "}\n":
            yield json.loads(text)
            text = ""


main(*sys.argv[1:])
