"""Follows the drain of one maintenance on Drydock's status stream, prints it as it goes, and ends when the maintenance has
been deleted.

    python3 client.py ADDRESS CA_FILE SERVER_NAME TOKEN_FILE MAINTENANCE
"""
import sys
import time

import grpc

from drydock.status.v1alpha1 import status_pb2 as pb
from drydock.status.v1alpha1 import status_pb2_grpc


def main(address, ca, server, token, name):
    tls = grpc.ssl_channel_credentials(open(ca, "rb").read())
    bearer = grpc.access_token_call_credentials(open(token).read().strip())
    credentials = grpc.composite_channel_credentials(tls, bearer)
    channel = grpc.secure_channel(address, credentials, [("grpc.ssl_target_name_override", server)])
    client = status_pb2_grpc.StatusServiceStub(channel)
    resume, last = b"", pb.Maintenance()
    while True:
        options = pb.WatchOptions(resume_token=resume)
        try:
            for response in client.WatchMaintenances(pb.WatchMaintenancesRequest(maintenance=name, options=options)):
                resume = response.resume_token
                event = response.WhichOneof("event")
                if event == "updated":
                    last = response.updated
                    show(last)
                elif event == "removed":
                    o, left = last.outcomes, last.pods_pending + last.pods_evicting
                    print(f"final evicted={o.evicted} canceled={o.canceled} passed_over={o.passed_over} "
                          f"returned={o.returned} drained_nodes={last.drained_nodes} left={left}")
                    return
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.OUT_OF_RANGE:
                resume = b""  # Too long away: what there is now takes the place of everything.
            elif error.code() == grpc.StatusCode.UNAVAILABLE:
                time.sleep(1)  # The server restarts: go on after the last response.
            else:
                sys.exit(f"{error.code().name}: {error.details()}")


def show(m):
    entry = f" entry {m.current_entry_index + 1} of {m.entries}" if m.HasField("current_entry") else ""
    print(f"{m.name} {pb.Stage.Name(m.stage)}{entry}: {m.pods_pending} pending, {m.pods_evicting} evicting, "
          f"{m.blocked} blocked; {m.drained_nodes} of {m.nodes} nodes drained", flush=True)
    for b in m.blockers:
        reason = pb.BlockReason.Name(b.reason) if b.reason in pb.BlockReason.values() else b.reason
        print(f"  {b.pod_namespace}/{b.pod_name} on {b.node}: {reason}: {b.message}", flush=True)


main(*sys.argv[1:])
