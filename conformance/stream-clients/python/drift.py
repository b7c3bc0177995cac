"""Fails where the messages or methods committed here are not those of the descriptors in FILE, which protoc makes of proto/.

    python3 drift.py FILE

The generated files are not compared as text: it differs with the version of protoc.
"""
import sys

from google.protobuf import descriptor_pb2

from drydock.status.v1alpha1 import status_pb2, status_pb2_grpc


def main(path):
    wanted = descriptor_pb2.FileDescriptorSet.FromString(open(path, "rb").read()).file[0]
    committed = descriptor_pb2.FileDescriptorProto.FromString(status_pb2.DESCRIPTOR.serialized_pb)
    for file in (wanted, committed):
        for message in file.message_type:
            for field in message.field:
                field.ClearField("json_name")
    methods = {method.name for service in wanted.service for method in service.method}
    stub = vars(status_pb2_grpc.StatusServiceServicer)
    if wanted != committed or methods != {name for name in stub if not name.startswith("_")}:
        sys.exit("the Python stubs are not what proto/ says: run conformance/stream-clients/generate and commit it")


main(*sys.argv[1:])
