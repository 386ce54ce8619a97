"""No weight lies in anonymous memory: workers map the store's files."""
import re

from suite import Suite

KV_MIB = 64
LIMIT_MIB = KV_MIB + 64


def status_kib(process, field):
    with open(f"/proc/{process.pid}/status") as file:
        return int(re.search(rf"^{field}:\s+(\d+) kB", file.read(), re.M).group(1))


def mapped_bytes(process, suffix):
    total = 0
    with open(f"/proc/{process.pid}/maps") as file:
        for line in file:
            words = line.split()
            if len(words) == 6 and re.search(suffix, words[5]):
                assert words[1][1] == "-", f"mapped for writing: {line}"
                begin, end = (int(word, 16) for word in words[0].split("-"))
                total += end - begin
    return total


def measure(dtype):
    with Suite(worker_env={"FX_KV_MIB": str(KV_MIB)}, dtype=dtype) as suite:
        worker = suite.processes["worker-0"]
        suite.complete("Call me", max_tokens=64)
        anonymous, mapped = status_kib(worker, "RssAnon"), mapped_bytes(worker, r"/pack-.*\.bin$")
        print(f"{dtype}: RssAnon {anonymous} KiB, packed weights mapped {mapped >> 10} KiB")
        assert anonymous <= LIMIT_MIB << 10, f"{anonymous} KiB"
        return anonymous, mapped


small, small_mapped = measure("int4")
large, large_mapped = measure("f32")
# 7.5 million parameters: 4 bytes each in f32, 0.5625 in int4
assert large_mapped >= 28 << 20, f"only {large_mapped} bytes of weights are mapped"
assert large_mapped - small_mapped >= 20 << 20
assert large - small <= 8 << 10, f"f32 weights cost {large - small} KiB of anonymous memory"
