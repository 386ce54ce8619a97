#!/usr/bin/env python3
"""Known answers of the INT4 micro-block codec, from its definition in exact rationals.

Shares nothing with the C code: f32 rounding is done here on fractions. Floats are bit patterns, 8 hex digits each.
Usage: int4_vectors.py > int4_vectors.json
"""
import json
import random
import struct
from fractions import Fraction

BLOCK = 64


def bits(values):
    return "".join("%08x" % struct.unpack("<I", struct.pack("<f", v))[0] for v in values)


def half_even(q):
    floor = q.numerator // q.denominator
    rest = q - floor
    return floor + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and floor % 2 == 1))


def f32(q):
    """The f32 nearest to the fraction q, ties to even, subnormals kept, as a fraction."""
    if q == 0:
        return Fraction(0)
    exponent = -149
    while abs(q) >= Fraction(2) ** (exponent + 24):
        exponent += 1
    return half_even(q / Fraction(2) ** exponent) * Fraction(2) ** exponent


def encode(values):
    codes, scales = [], []
    for at in range(0, len(values), BLOCK):
        block = [Fraction(v) for v in values[at:at + BLOCK]]
        block += [Fraction(0)] * (BLOCK - len(block))
        scale = f32(max(abs(w) for w in block) / 7)
        scales.append(scale)
        for w in block:
            q = max(-8, min(7, half_even(f32(w / scale)))) if scale else 0
            codes.append(q)
    packed = [(codes[i] & 15) | (codes[i + 1] & 15) << 4 for i in range(0, len(codes), 2)]
    decoded = [f32(codes[i] * scales[i // BLOCK]) for i in range(len(values))]
    return packed, scales, decoded


def case(name, values):
    values = [struct.unpack("<f", struct.pack("<f", v))[0] for v in values]
    packed, scales, decoded = encode(values)
    return {
        "name": name,
        "in": bits(values),
        "codes": "".join("%02x" % b for b in packed),
        "scales": bits(float(s) for s in scales),
        "out": bits(float(v) for v in decoded),
    }


def cases():
    draw = random.Random(4)
    tiny = 2.0 ** -149
    yield case("ties go to the even code", [7, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5])
    yield case("negative ties go to the even code", [7, -0.5, -1.5, -2.5, -3.5, -4.5, -5.5, -6.5])
    yield case("just beside a tie", [7, 0.49999997, 0.50000006, 1.4999999, 1.5000001, -2.4999998])
    yield case("signs", [7, -7, 3, -3, 1, -1, 2, -2, 5, -5])
    yield case("largest is negative", [-14, 13, 12.99, -1, 1, 0.5])
    yield case("one value", [3.25])
    yield case("a tail of one after a block", [1.0] * 64 + [-0.75])
    yield case("an odd tail whose scale is its own", [100.0] * 64 + [0.01, -0.02, 0.03])
    yield case("tail of 63", [draw.gauss(0, 1) for _ in range(63)])
    yield case("a zero block between others", [1.0] * 64 + [0.0] * 64 + [-2.0] * 64)
    yield case("minus zero", [-0.0, 0.0, -0.0])
    yield case("a scale that rounds to zero", [tiny * 3, -tiny * 2, tiny])
    yield case("the smallest scale", [tiny * 4, -tiny * 4, tiny * 3, tiny])
    yield case("a subnormal scale clamps to -8 and 7", [tiny * 10, -tiny * 10, tiny * 8, -tiny * 9])
    yield case("subnormal values", [tiny * draw.randrange(-9999, 9999) for _ in range(70)])
    yield case("the largest floats", [3.4028234663852886e38, -3.4028234663852886e38, 1e38, -2e37])
    yield case("one outlier", [1000.0] + [draw.gauss(0, 1) for _ in range(63)])
    for n in (64, 65, 127, 128, 192, 300):
        yield case("gauss %d" % n, [draw.gauss(0, 0.02) for _ in range(n)])
    for n in (31, 96):
        yield case("heavy tails %d" % n, [draw.gauss(0, 1) ** 5 for _ in range(n)])


print(json.dumps({"cases": list(cases())}, indent=0))
