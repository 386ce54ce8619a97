#!/usr/bin/env python3
"""Writes tokenizer-steps.json beside itself: small tokenizers, one for each step and option of
tokenizer.json, with the ids and texts of the official implementation.

Run by `tools/oracle/tokenizers.sh vectors` (tokenizers 0.23.3); the tests read the file only.
"""
import json
import os
import random

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = [
    "It was the best of times, it was the worst of times, it was the age of wisdom,",
    "the whale, the white whale, and the sea; the sea, and nothing but the sea. I'll don't we're",
    "banana bandana banana; aaaa aaaaaa aaaaaaaaaa; abababab abcabcabc; mississippi. 1234 20 2026",
    "Ein schöner Tag für die Brücke über den Fluß; déjà vu, naïve, 東京と京都と東京. e\u0301 \u00e9",
    "for (int i = 0; i < n; i++) { sum += a[i]; }\n\n\treturn sum;\n    indented\n        more\n",
] * 3
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = CONTRACTIONS + "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
UPPER, LOWER = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]", "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
O200K = (
    f"[^\\r\\n\\p{{L}}\\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTIONS}?"
    f"|[^\\r\\n\\p{{L}}\\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTIONS}?"
    "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
)
DEEPSEEK = (
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
)


def trained(chars):
    trainer = trainers.BpeTrainer(
        vocab_size=330 if not chars else 200,
        initial_alphabet=[] if chars else pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = (
        pre_tokenizers.Metaspace() if chars else pre_tokenizers.ByteLevel(add_prefix_space=True)
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], model["merges"]


def byte_model():
    vocab, merges = trained(False)
    return {"type": "BPE", "vocab": vocab, "merges": merges}


def char_model():
    """As converters of SentencePiece models write it: <unk>, the bytes, then the rest."""
    learnt, merges = trained(True)
    names = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    names += [name for name in learnt if name not in names]
    vocab = {name: id for id, name in enumerate(names)}
    return {"type": "BPE", "vocab": vocab, "merges": [" ".join(pair) for pair in merges]}


def byte_level(**options):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False} | options


def split(pattern, behavior="Isolated", invert=False):
    kind = pattern if isinstance(pattern, dict) else {"Regex": pattern}
    return {"type": "Split", "pattern": kind, "behavior": behavior, "invert": invert}


def pres(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


def replace(pattern, content):
    kind = pattern if isinstance(pattern, dict) else {"String": pattern}
    return {"type": "Replace", "pattern": kind, "content": content}


def norms(*parts):
    return {"type": "Sequence", "normalizers": list(parts)}


def metaspace(scheme, cut, name="prepend_scheme"):
    return {"type": "Metaspace", "replacement": "▁", name: scheme, "split": cut}


def decs(*parts):
    return {"type": "Sequence", "decoders": list(parts)}


def added(id, content, **flags):
    none = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    return {"id": id, "content": content} | none | flags


PREPEND = {"type": "Prepend", "prepend": "▁"}
SPACES = replace(" ", "▁")
FALLBACK, FUSE = {"type": "ByteFallback"}, {"type": "Fuse"}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
LLAMA2 = {
    "normalizer": norms(PREPEND, SPACES),
    "decoder": decs(replace("▁", " "), FALLBACK, FUSE, STRIP),
    "flags": {"byte_fallback": True, "unk_token": "<unk>", "fuse_unk": True},
}


def byte_cases(size):
    level = byte_level()
    cases = {
        "gpt2": {"pre_tokenizer": byte_level(use_regex=True)},
        "gpt2 prefix": {"pre_tokenizer": byte_level(use_regex=True, add_prefix_space=True)},
        "prefix alone": {"pre_tokenizer": byte_level(add_prefix_space=True)},
        "llama3": {"pre_tokenizer": pres(split(LLAMA3), level), "flags": {"ignore_merges": True}},
        "qwen": {
            "pre_tokenizer": pres(split(LLAMA3.replace("{1,3}", "")), level),
            "normalizer": {"type": "NFC"},
        },
        "o200k": {"pre_tokenizer": pres(split(O200K, "Removed", True), level)},
        "deepseek": {
            "pre_tokenizer": pres(split("\\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"), split(DEEPSEEK), level)
        },
        "digits": {
            "pre_tokenizer": pres({"type": "Digits", "individual_digits": True}, byte_level(use_regex=True))
        },
        "digit runs": {"pre_tokenizer": pres({"type": "Digits", "individual_digits": False}, level)},
        "replace": {"pre_tokenizer": level, "normalizer": norms(replace("the", "an"), replace(" ", "__"))},
        "replace regex": {"pre_tokenizer": level, "normalizer": replace({"Regex": "[ \\t]{2,}|\\d"}, "#")},
        "replace by nothing": {"pre_tokenizer": level, "normalizer": replace("e", "")},
        "prepend": {"pre_tokenizer": level, "normalizer": norms({"type": "NFC"}, {"type": "Prepend", "prepend": "a"})},
    }
    for behavior in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            name = f"{behavior}{' inverted' if invert else ''}"
            cases[name] = {"pre_tokenizer": pres(split("\\s|[a-e]", behavior, invert), level)}
        cases[f"{behavior} text"] = {"pre_tokenizer": pres(split({"String": "a"}, behavior), level)}
    tokens = [
        added(size, "<|left|>", lstrip=True),
        added(size + 1, "<|right|>", rstrip=True, special=True),
        added(size + 2, "<|both|>", lstrip=True, rstrip=True),
        added(size + 3, "sea", single_word=True),
        added(size + 4, "é!", normalized=True),
        added(size + 5, "  "),
        added(size + 6, "whale", single_word=True, normalized=True, lstrip=True),
    ]
    cases["added"] = {"pre_tokenizer": level, "added_tokens": tokens}
    cases["added NFC"] = {"pre_tokenizer": level, "added_tokens": tokens, "normalizer": {"type": "NFC"}}
    for case in cases.values():
        case |= {"model": "bytes", "decoder": byte_level(add_prefix_space=True)}
    return cases


def char_cases(size):
    specials = [added(0, "<unk>", special=True), added(1, "<s>", special=True), added(2, "</s>", special=True)]
    processor = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
    }
    plain = decs(replace("▁", " "), FALLBACK, FUSE)
    full = LLAMA2["flags"]
    some = [f"<0x{byte:02X}>" for byte in range(0xF0, 0x100)]
    cases = {
        "llama2": LLAMA2 | {"added_tokens": specials, "post_processor": processor},
        "gemma": {
            "normalizer": SPACES,
            "pre_tokenizer": split({"String": " "}, "MergedWithPrevious"),
            "decoder": plain,
            "flags": full,
        },
        "phi3": LLAMA2
        | {"added_tokens": specials + [added(size, "<|end|>", special=True, rstrip=True), added(size + 1, "sea", normalized=True)]},
        "unknown": {"normalizer": SPACES, "decoder": plain, "flags": {"unk_token": "<unk>"}},
        "unknown fused": {"normalizer": SPACES, "decoder": plain, "flags": {"unk_token": "<unk>", "fuse_unk": True}},
        "left out": {"normalizer": SPACES, "decoder": plain, "flags": {}},
        "some bytes": {"normalizer": SPACES, "decoder": plain, "flags": full, "without": some},
        "whole words": LLAMA2 | {"flags": full | {"ignore_merges": True}, "pre_tokenizer": metaspace("never", True)},
        "old metaspace": {
            "pre_tokenizer": metaspace(True, True, "add_prefix_space"),
            "decoder": metaspace(True, True, "add_prefix_space"),
            "flags": full,
        },
        "digits": LLAMA2 | {"pre_tokenizer": {"type": "Digits", "individual_digits": True}},
    }
    for scheme in ("always", "first", "never"):
        for cut in (True, False):
            cases[f"metaspace {scheme}{' cut' if cut else ''}"] = {
                "pre_tokenizer": metaspace(scheme, cut),
                "decoder": metaspace(scheme, cut),
                "flags": full,
                "added_tokens": specials + [added(size, "<|end|>")],
            }
    cases["cut and marked"] = {
        "pre_tokenizer": pres(split("\\d+"), metaspace("always", True)),
        "decoder": decs(metaspace("always", True), FALLBACK),
        "flags": full,
    }
    for case in cases.values():
        case["model"] = "chars"
    return cases


def texts():
    fixed = [
        "", "a", " ", "  ", "the whale", " the  sea,   and\n\n more \t ", "I'll DON'T we'RE it's 'tis",
        "12 1234567 0.5 ½ x2 ٣٤", "e\u0301 \u00e9! é! \u1100\u1161\u11a8 q\u0323\u0307 \u0344", "東京と京都 Brücke Fluß",
        "emoji 🦈👩\u200d💻 \u0000\u0001\u007f", "x <|left|> y <|right|>  z  <|both|>   seaside sea, sea\u0301 _sea sea",
        "<s>the</s> sea<unk>the <|end|>  sea<|end|>", "▁▁the▁sea <0x0A> <0xE4>", "whale whale! thewhale  whale",
        "CamelCaseWords andLower ALLCAPS's aB/\n//", "\u00a0\u2003\u3000\u180e\u0085 end", "\U0001f6dc\u0897\U00010d40 \u1c89",
    ]
    rng = random.Random(8)
    parts = list("abehst 1\n.'▁é京🦈") + ["the", " sea", "  ", "12", "na", "<s>", "<|end|>", "<|left|>", "whale", "'s"]
    return fixed + ["".join(rng.choice(parts) for _ in range(rng.randint(2, 24))) for _ in range(16)]


def spec_of(case, model):
    vocab = {name: id for name, id in model["vocab"].items() if name not in case.get("without", [])}
    known = {
        key: case.get(key)
        for key in ("normalizer", "pre_tokenizer", "post_processor", "decoder")
    }
    return known | {
        "version": "1.0",
        "added_tokens": case.get("added_tokens", []),
        "model": model | {"vocab": vocab} | case.get("flags", {}),
    }


def random_ids(case, tokenizer, rng):
    """No fallback bytes: of those that are no text we make other U+FFFD, see detok.h."""
    first = 259 if case["model"] == "chars" else 0
    known = [id for id in range(first, tokenizer.get_vocab_size()) if tokenizer.id_to_token(id)]
    known += [id for id in range(3) if case["model"] == "chars"]
    return [rng.choice(known) for _ in range(rng.randint(0, 12))]


def finish(name, case, model, rows):
    tokenizer, rng = Tokenizer.from_str(json.dumps(spec_of(case, model))), random.Random(9)
    out = {"name": f"{case['model']}: {name}"} | case
    for key, special in (("template", False), ("user", True)):
        tokenizer.encode_special_tokens = special
        out[key] = [tokenizer.encode(text, add_special_tokens=False).ids for text in rows]
    tokenizer.encode_special_tokens = False
    out["prompt"] = tokenizer.encode("the sea").ids
    decoded = [(ids, tokenizer.decode(ids, skip_special_tokens=True)) for ids in out["template"]]
    out["texts"] = [text for _, text in decoded]
    made = [random_ids(case, tokenizer, rng) for _ in range(12)]
    out["decode"] = [[ids, tokenizer.decode(ids, skip_special_tokens=True)] for ids in made]
    return out


def main():
    models_made, rows = {"bytes": byte_model(), "chars": char_model()}, texts()
    cases = []
    for name, case in byte_cases(len(models_made["bytes"]["vocab"])).items():
        cases.append(finish(name, case, models_made["bytes"], rows))
    for name, case in char_cases(len(models_made["chars"]["vocab"])).items():
        cases.append(finish(name, case, models_made["chars"], rows))
    with open(os.path.join(HERE, "tokenizer-steps.json"), "w", encoding="utf-8") as file:
        json.dump({"models": models_made, "texts": rows, "cases": cases}, file, separators=(",", ":"))
        file.write("\n")


main()
