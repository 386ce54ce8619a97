"""Model folders that lie are refused, naming the tensor; the store stays as it was."""
import json
import shutil
import struct

from suite import MODEL, ROOT, Suite

SOURCE = ROOT / "models" / MODEL
VICTIM = "model.layers.1.self_attn.q_proj.weight"


def read_model():
    data = (SOURCE / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + length]), data[8 + length:]


def write_model(folder, header, payload):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + payload)


def truncated(folder, header, payload):
    last = max((v["data_offsets"][1], k) for k, v in header.items() if k != "__metadata__")[1]
    write_model(folder, header, payload[:-100])
    return last


def past_the_end(folder, header, payload):
    begin, end = header[VICTIM]["data_offsets"]
    shift = len(payload)
    header[VICTIM]["data_offsets"] = [begin + shift, end + shift]
    write_model(folder, header, payload)
    return VICTIM


def shape_too_large(folder, header, payload):
    header[VICTIM]["shape"][0] *= 2
    write_model(folder, header, payload)
    return VICTIM


def shape_that_overflows(folder, header, payload):
    header[VICTIM]["shape"] = [1 << 62, 1 << 62]
    write_model(folder, header, payload)
    return VICTIM


def shape_of_another_model(folder, header, payload):
    header[VICTIM]["shape"] = header[VICTIM]["shape"][::-1] + [1]
    write_model(folder, header, payload)
    return VICTIM


def backwards(folder, header, payload):
    header[VICTIM]["data_offsets"] = header[VICTIM]["data_offsets"][::-1]
    write_model(folder, header, payload)
    return VICTIM


def overlapping(folder, header, payload):
    other = next(k for k in header if k not in (VICTIM, "__metadata__")
                 and header[k]["shape"] == header[VICTIM]["shape"])
    header[VICTIM]["data_offsets"] = header[other]["data_offsets"]
    write_model(folder, header, payload)
    return "model.layers."


def unknown_dtype(folder, header, payload):
    header[VICTIM]["dtype"] = "Q99"
    write_model(folder, header, payload)
    return VICTIM


def missing(folder, header, payload):
    begin, end = header.pop(VICTIM)["data_offsets"]
    payload = payload[:begin] + payload[end:]
    for name, tensor in header.items():
        if name != "__metadata__" and tensor["data_offsets"][0] >= end:
            tensor["data_offsets"] = [at - (end - begin) for at in tensor["data_offsets"]]
    write_model(folder, header, payload)
    return VICTIM


def not_finite(folder, header, payload):
    begin, end = header[VICTIM]["data_offsets"]
    nan = {"F32": b"\x00\x00\xc0\x7f", "F16": b"\x00\x7e", "BF16": b"\xc0\x7f"}
    pattern = nan[header[VICTIM]["dtype"]]
    payload = payload[:begin] + pattern + payload[begin + len(pattern):]
    write_model(folder, header, payload)
    return VICTIM


LIES = [truncated, past_the_end, shape_too_large, shape_that_overflows, shape_of_another_model,
        backwards, overlapping, unknown_dtype, missing, not_finite]

with Suite() as suite:
    before = suite.cli("models").stdout
    for lie in LIES:
        folder = suite.folder / lie.__name__
        shutil.copytree(SOURCE, folder)
        named = lie(folder, *read_model())
        done = suite.cli("import", str(folder), "--name", "lying", "--dtype", "int4", check=False)
        said = (done.stdout + done.stderr).strip()
        print(f"{lie.__name__}: {said.splitlines()[-1]}", flush=True)
        assert done.returncode != 0, f"{lie.__name__} was imported"
        assert named in said, f"{lie.__name__}: {named} is not named in {said!r}"
        shutil.rmtree(folder)
    assert suite.cli("models").stdout == before, "a refused import left something in the store"
    assert not list(suite.models.glob("lying*")), list(suite.models.iterdir())
    assert suite.complete("and then", max_tokens=4)
