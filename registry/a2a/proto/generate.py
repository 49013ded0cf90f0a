"""Writes the descriptors of the A2A services that the client speaks over gRPC: one file for each generation.

They are those of PyPI `a2a-sdk` 1.3, which has both generations compiled, without the options that only other bindings
read. Each file is a `google.protobuf.FileDescriptorSet` with all that it imports. Run it with a Python that has the SDK:

    python3 registry/a2a/proto/generate.py
"""

import pathlib
import sys

from a2a.compat.v0_3 import a2a_v0_3_pb2
from a2a.types import a2a_pb2
from google.protobuf import descriptor_pb2, empty_pb2, struct_pb2, timestamp_pb2


def descriptors(service):
    """The descriptor set of a service's file, in bytes that are the same in every run."""
    files = descriptor_pb2.FileDescriptorSet()
    for module in (empty_pb2, struct_pb2, timestamp_pb2, service):
        module.DESCRIPTOR.CopyToProto(files.file.add())
    own = files.file[-1]
    own.dependency[:] = [name for name in own.dependency if not name.startswith('google/api/')]
    own.ClearField('options')
    for message in own.message_type:
        for field in message.field:
            field.ClearField('options')
    for method in own.service[0].method:
        method.ClearField('options')
    return files.SerializeToString(deterministic=True)


folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
for service in (a2a_pb2, a2a_v0_3_pb2):
    (folder / f'{service.DESCRIPTOR.package}.binpb').write_bytes(descriptors(service))
