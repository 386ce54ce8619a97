#!/usr/bin/env python3
"""compare_tokenizers.py ids|bench FRACTAL_BENCH TOKENIZER_JSON...: called by tokenizers.sh."""
import json
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time

from tokenizers import Tokenizer

USER, TEMPLATE, PROMPT, IDS = range(4)
ROUNDS = 5


def pick(rng, parts, most):
    return "".join(rng.choice(parts) for _ in range(rng.randint(1, most)))


def planes(rng):
    ranges = [(0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF)]
    ranges += [(plane << 16, (plane << 16) + 0xFFFF) for plane in range(1, 17)]
    for _ in range(1500):
        first, last = rng.choice(ranges)
        yield "".join(chr(rng.randint(first, last)) for _ in range(rng.randint(1, 40)))
    for first in range(0, 0x32400, 64):
        if not 0xD800 <= first < 0xE000:
            yield " ".join(chr(point) for point in range(first, first + 64))


def marks(rng):
    some = [chr(point) for point in range(0x300, 0x370)]
    some += list("\u093c\u094d\u0f71\u0f72\u3099\u1dfa\u0898\u20dd\u05b0\u302a\u1161\u11a8")
    bases = "aeiounAEOäåçé가각カはसह东\u1100\u212b\u0958\ufb2c\u2126\u0344\U00011935\U00011930\U00016d68 "
    for _ in range(800):
        yield "".join(
            rng.choice(bases) + "".join(rng.choice(some) for _ in range(rng.randint(0, 4)))
            for _ in range(rng.randint(1, 12))
        )


def mixtures(rng):
    emoji = list("👩👨👧👦🏽\u200d\ufe0f❤🏳🌈🇩🇪🇺🇸1\u20e3🧑💻🤝🫱🏻🫲🏿 ") + ["ok"]
    blanks = list(" \t\n\r\u00a0\u2003\u3000\u180e\u0085\u2028\x0b\x0c\x1c\x1fa.1\u200b") + ["  ", "\r\n"]
    numbers = "1 12 123 1234567 0.5 -3e10 1,000,000 ٣ ½ ² Ⅷ 一 १२३ $ % x .".split() + [" "]
    short = "'s 'S 'T 're 'RE 've 'm 'M 'll 'LL 'lL 'd 'D 'ſ ' '' ’s don I we É x' 're's 'K / // \n/ ab AB aB Ab ǅ ʰ ª".split(" ")
    names = "<|begin_of_text|> <|eot_id|> <|im_start|> <|im_end|> <s> </s> <unk> <|endoftext|> <think> </think>"
    names += " <|endofprompt|> <tool_call> a < | > <| hello ▁ ▁▁ <0x0A> <0xE4>"
    for parts, count, most in (
        (emoji, 500, 20),
        (blanks, 800, 30),
        (numbers, 400, 20),
        (short + [" ", "\n"], 800, 16),
        (names.split() + [" ", "  ", "\n"], 600, 12),
    ):
        for _ in range(count):
            yield pick(rng, parts, most)


def prose(rng):
    texts = [
        "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему. ",
        "我能吞下玻璃而不伤身体。床前明月光，疑是地上霜。",
        "أنا قادر على أكل الزجاج و هذا لا يؤلمني. ",
        "मैं काँच खा सकता हूँ और मुझे उससे कोई चोट नहीं पहुंचती. ",
        "ฉันกินกระจกได้ แต่มันไม่ทำให้ฉันเจ็บ",
        "나는 유리를 먹을 수 있어요. 그래도 아프지 않아요 ",
        "私はガラスを食べられます。それは私を傷つけません。",
        "The quick brown fox can't jump over 1,234 lazy dogs; they're asleep.\n\n\tIt isn't   fair!  ",
    ]
    with open(__file__, encoding="utf-8") as file:
        texts.append(file.read())
    for _ in range(120):
        for text in texts:
            at = rng.randrange(len(text))
            yield (text * 3)[at : at + rng.randint(1, 300)]


def broken(rng):
    whole = "床前明月光 Все plain text 😀 é".encode()
    for _ in range(500):
        yield bytes(rng.randrange(256) for _ in range(rng.randint(1, 40)))
    for _ in range(300):
        some = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            some[rng.randrange(len(some))] = rng.randrange(256)
        yield bytes(some)


def long_runs():
    for unit in ("a", " ", "\n", "1", "é", "一", ".", "A", "😀", "\u0301", "ab ", " \n"):
        yield unit * (1000000 // len(unit.encode()))


def corpus():
    rng = random.Random(5)
    rows = [""]
    for part in (planes(rng), marks(rng), mixtures(rng), prose(rng), long_runs()):
        rows.extend(part)
    return [text.encode() for text in rows] + list(broken(rng))


def ours(bench, path, rows):
    """rows of (kind, bytes) -> [(ids, text)]"""
    given = b"".join(struct.pack("=II", kind, len(text)) + text for kind, text in rows)
    done = subprocess.run([bench, "tokenizer-ids", path], input=given, capture_output=True)
    if done.returncode:
        raise SystemExit(f"{path}: {done.stderr.decode()}")
    at, out = 0, []
    for _ in rows:
        (count,) = struct.unpack_from("=I", done.stdout, at)
        ids = list(struct.unpack_from(f"={count}I", done.stdout, at + 4))
        at += 4 + 4 * count
        (size,) = struct.unpack_from("=I", done.stdout, at)
        out.append((ids, done.stdout[at + 4 : at + 4 + size]))
        at += 4 + size
    return out


def show(what, text, got, want):
    first = next((i for i, pair in enumerate(zip(got, want)) if pair[0] != pair[1]), "length")
    print(f"  {what} {text[:60]!r}: at {first}: ours {got[:12]} theirs {want[:12]}")


def compare_ids(bench, path, rows):
    official = Tokenizer.from_file(path)
    differ = texts_differ = 0
    for kind in (PROMPT, TEMPLATE, USER):
        official.encode_special_tokens = kind == USER
        for text, (ids, decoded) in zip(rows, ours(bench, path, [(kind, row) for row in rows])):
            string = text.decode("utf-8", "replace")
            want = official.encode(string, add_special_tokens=kind == PROMPT).ids
            if ids != want:
                differ += 1
                if differ <= 5:
                    show("ids of", string, ids, want)
            elif official.decode(ids, skip_special_tokens=True).encode() != decoded:
                texts_differ += 1
                if texts_differ <= 5:
                    show("text of", string, decoded, official.decode(ids).encode())
    print(f"{path}: {len(rows)} strings x 3 kinds: {differ} differ, {texts_differ} decode otherwise")
    return differ + texts_differ


def compare_decoding(bench, path):
    """Random ids; of byte fallback only whole characters, see detok.h."""
    official, rng = Tokenizer.from_file(path), random.Random(6)
    fallback = {official.token_to_id(f"<0x{byte:02X}>") for byte in range(256)}
    known = [id for id in range(official.get_vocab_size()) if official.id_to_token(id) and id not in fallback]
    rows = [[rng.choice(known) for _ in range(rng.randint(0, 30))] for _ in range(3000)]
    got = ours(bench, path, [(IDS, struct.pack(f"={len(row)}I", *row)) for row in rows])
    differ = sum(
        official.decode(row, skip_special_tokens=True).encode() != text for row, (_, text) in zip(rows, got)
    )
    print(f"{path}: {len(rows)} random lists of ids: {differ} decode otherwise")
    return differ


def byte_alphabet():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


def tiktoken_of(path):
    """The same vocabulary for tiktoken, where that can have it: byte-level with one Split."""
    import tiktoken

    with open(path, encoding="utf-8") as file:
        spec = json.load(file)
    parts = (spec["pre_tokenizer"] or {}).get("pretokenizers", [])
    if len(parts) != 2 or parts[0]["type"] != "Split":
        return None
    alphabet, ranks = byte_alphabet(), {}
    for name, id in spec["model"]["vocab"].items():
        if all(char in alphabet for char in name):
            ranks[bytes(alphabet[char] for char in name)] = id
    return tiktoken.Encoding(
        "x", pat_str=parts[0]["pattern"]["Regex"], mergeable_ranks=ranks, special_tokens={}
    )


def pieces(text):
    """As tests/bench/tokenizer.c: at most 100 kB, to the end of a line."""
    while text:
        cut = len(text) if len(text) <= 100000 else text.rfind(b"\n", 0, 100000) + 1
        yield text[:cut].decode()
        text = text[cut:]


def mb_per_s(encode, texts, size, rounds):
    speeds = []
    for _ in range(rounds):
        begun = time.thread_time()
        for text in texts:
            encode(text)
        speeds.append(size / (time.thread_time() - begun) / 1e6)
    return statistics.median(speeds)


def measure(bench, path):
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run([bench, "tokenizer", "--write", file.name], check=True)
        text = file.read()
        texts = list(pieces(text))
        print(path)
        official, tik = Tokenizer.from_file(path), tiktoken_of(path)
        few = texts[:20]
        few_size = sum(len(t.encode()) for t in few)
        rounds = {"fractal": [], "tiktoken": [], "tokenizers": []}
        for _ in range(ROUNDS):  # in turn, so that all meet the same noise
            done = subprocess.run([bench, "tokenizer", path, file.name], check=True, capture_output=True)
            rounds["fractal"].append(float(done.stdout.decode().splitlines()[-1].split()[1]))
            if tik:
                rounds["tiktoken"].append(mb_per_s(tik.encode_ordinary, texts, len(text), 1))
            rounds["tokenizers"].append(
                mb_per_s(lambda t: official.encode(t, add_special_tokens=False), few, few_size, 1)
            )
        mine = rounds.pop("fractal")
        print(f"  fractal: {statistics.median(mine):.1f} MB/s of processor time, one thread, {ROUNDS} rounds in turn")
        for name, theirs in rounds.items():
            if not theirs:
                print(f"  {name}: can't have this tokenizer")
                continue
            ratio = statistics.median(a / b for a, b in zip(mine, theirs))
            print(f"  {name}: {statistics.median(theirs):.1f} MB/s; ours is {ratio:.1f} times that")


def main():
    what, bench, *paths = sys.argv[1:]
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if what == "bench":
        for path in paths:
            measure(bench, path)
        return
    rows = corpus()
    differ = sum(compare_ids(bench, path, rows) + compare_decoding(bench, path) for path in paths)
    sys.exit(1 if differ else 0)


main()
