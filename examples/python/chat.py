"""One streamed answer over gRPC: chat.py ADDRESS[,ADDRESS...] KEY_FILE MODEL TEXT

When the gateway that sends it dies, the rest comes from the next one, or from the same one once it
is back. No generated code: the gateway describes itself by reflection.
"""
import itertools
import math
import sys
import time
import uuid

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

PATIENCE_S = 30  # without anything new


def method(channel, name):
    """A streaming method of the API: its request's class, and what calls it."""
    pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
    service = pool.FindServiceByName("fractal.v1.InferenceService")
    found = service.FindMethodByName(name)
    call = channel.unary_stream(
        f"/{service.full_name}/{name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(found.output_type).FromString,
    )
    return GetMessageClass(found.input_type), call


def is_cut(error):
    """The gateway is away. A broken connection has many codes, and no details of ours."""
    code = grpc.StatusCode
    told = "grpc-status-details-bin" in dict(error.trailing_metadata() or ())
    broken = error.code() in (code.CANCELLED, code.INTERNAL, code.UNKNOWN) and not told
    return error.code() == code.UNAVAILABLE or broken


def chat(channels, request, metadata):
    """The responses of Chat; after a cut the rest of them, from whichever gateway is there."""
    place = None  # where the last response left us
    heard = time.monotonic()
    metadata = metadata + [("idempotency-key", str(uuid.uuid4()))]  # again is not twice
    for channel in itertools.cycle(channels):
        follows = place is not None
        try:
            message, call = method(channel, "Follow" if follows else "Chat")
            fields = place if follows else request
            for response in call(message(**fields), metadata=metadata, timeout=120):
                piece = response.chat if follows else response
                place = {"id": piece.id, "after": piece.after}
                heard = time.monotonic()
                yield piece
            return
        except grpc.RpcError as error:
            if not is_cut(error) or time.monotonic() - heard > PATIENCE_S:
                raise
            time.sleep(0.25)


def main(addresses, key_file, model, text):
    with open(key_file, encoding="ascii") as file:
        metadata = [("authorization", "Bearer " + file.read().strip())]
    channels = [grpc.insecure_channel(address) for address in addresses.split(",")]
    messages = [{"role": "user", "content": text}]
    request = {"model": model, "max_tokens": 64, "logprobs": True, "messages": messages}
    request["sampling"] = {"temperature": 0}
    logprobs = []
    for piece in chat(channels, request, metadata):
        print(piece.content, end="", flush=True)
        logprobs += [token.logprob for token in piece.logprobs]
        usage = piece.usage
    print()
    counts = f"{usage.prompt_tokens} tokens asked, {usage.completion_tokens} answered"
    if logprobs:
        counts += f", each {math.exp(sum(logprobs) / len(logprobs)):.0%} likely"
    print(counts, file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit("usage: chat.py ADDRESS[,ADDRESS...] KEY_FILE MODEL TEXT")
    try:
        main(*sys.argv[1:])
    except grpc.RpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")
