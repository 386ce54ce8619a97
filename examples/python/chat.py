"""One streamed answer over gRPC: chat.py ADDRESS KEY_FILE MODEL TEXT

No generated code: the gateway describes itself by reflection.
"""
import math
import sys

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)


def main(address, key_file, model, text):
    with open(key_file, encoding="ascii") as file:
        metadata = [("authorization", "Bearer " + file.read().strip())]
    with grpc.insecure_channel(address) as channel:
        pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
        service = pool.FindServiceByName("fractal.v1.InferenceService")
        chat = service.FindMethodByName("Chat")
        call = channel.unary_stream(
            f"/{service.full_name}/{chat.name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(chat.output_type).FromString,
        )
        request = GetMessageClass(chat.input_type)(model=model, max_tokens=64, logprobs=True)
        request.messages.add(role="user", content=text)
        logprobs = []
        for piece in call(request, metadata=metadata, timeout=120):
            print(piece.content, end="", flush=True)
            logprobs += [token.logprob for token in piece.logprobs]
        print()
        usage = piece.usage
        counts = f"{usage.prompt_tokens} tokens asked, {usage.completion_tokens} answered"
        if logprobs:
            counts += f", each {math.exp(sum(logprobs) / len(logprobs)):.0%} likely"
        print(counts, file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit("usage: chat.py ADDRESS KEY_FILE MODEL TEXT")
    try:
        main(*sys.argv[1:])
    except grpc.RpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")
