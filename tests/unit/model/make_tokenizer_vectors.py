#!/usr/bin/env python3
"""Writes tokenizer-bpe*.json and tokenizer-vectors.json beside itself.

Needs `pip install tokenizers` (0.23.3 made the committed files); the tests read the files only.
Expected ids and texts are those of the library.
"""
import json
import os
import random

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = [
    "It was the best of times, it was the worst of times, it was the age of wisdom,",
    "the whale, the white whale, and the sea; the sea, and nothing but the sea.",
    "banana bandana banana; aaaa aaaaaa aaaaaaaaaa; abababab abcabcabc; mississippi.",
    "Ein schöner Tag für die Brücke über den Fluß; déjà vu, naïve, 東京と京都と東京.",
    "for (int i = 0; i < n; i++) { sum += a[i]; }\n\n\treturn sum;\n    indented\n        more\n",
] * 3


def base(ignore_merges):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|bos|>", "<|eos|>"],
        show_progress=False,
    )
    words = [piece for line in CORPUS for piece in line.split(" ")]
    pieces = [(" " if i else "") + word for i, word in enumerate(words)]
    tokenizer.train_from_iterator(pieces, trainer)
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>", "<｜begin▁of▁it｜>", "<|im"])
    tokenizer.add_tokens(
        [AddedToken("    ", normalized=False), "a<|", "whale!", AddedToken("Ġx", normalized=False)]
    )
    bos = tokenizer.token_to_id("<|bos|>")
    eos = tokenizer.token_to_id("<|eos|>")
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single="<|bos|> $A <|eos|>", special_tokens=[("<|bos|>", bos), ("<|eos|>", eos)]
            ),
        ]
    )
    return tokenizer


def texts():
    fixed = [
        "",
        "a",
        " ",
        "the whale",
        "banana bandana",
        "aaaaaaaaaaaaaaa",
        "abcabcabcab",
        "It was the best of times",
        "Brücke über den Fluß, 東京と京都",
        "emoji 🦈🐋 and \u0000\u0001\u007f controls\r\n\t",
        "x<|im_start|>user\nhello<|im_end|>\n",
        "<|bos|>twice<|bos|><|eos|>",
        "<|im_sta<|im_start|>rt|><|im",
        "a<|im_end|>a<|b",
        "<｜begin▁of▁it｜>x",
        "four    spaces     five        eight",
        "the whale! the whale!? Ġx Ġ",
        "<|im_start|",
    ]
    rng = random.Random(3)
    parts = ["a", "b", "na", "ban", " the", "sea", "whale", " ", "ü", "京", "\n", "<|im_end|>", "<|"]
    parts += ["    ", "!", "times", "e", "s", "0", "a<|", "🦈"]
    made = ["".join(rng.choice(parts) for _ in range(rng.randint(1, 40))) for _ in range(60)]
    return fixed + made


def vectors(tokenizer):
    rng = random.Random(4)
    rows = []
    for text in texts() + [tokenizer.decode([id]) for id in range(260, 420, 3)]:
        tokenizer.encode_special_tokens = False
        row = {
            "text": text,
            "prompt": tokenizer.encode(text).ids,
            "template": tokenizer.encode(text, add_special_tokens=False).ids,
        }
        tokenizer.encode_special_tokens = True
        row["user"] = tokenizer.encode(text, add_special_tokens=False).ids
        rows.append(row)
    decodes = []
    size = tokenizer.get_vocab_size()
    for _ in range(80):
        ids = [rng.randrange(size) for _ in range(rng.randint(0, 24))]
        decodes.append({"ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=True)})
    return {"encode": rows, "decode": decodes}


def respell_merges(path):
    """The older spelling "a b"; every third merge goes, so that its word is met whole only."""
    with open(path, encoding="utf-8") as file:
        spec = json.load(file)
    merges = [pair for i, pair in enumerate(spec["model"]["merges"]) if i % 3]
    spec["model"]["merges"] = [" ".join(pair) for pair in merges]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(spec, file, ensure_ascii=False, separators=(",", ":"))


def main():
    out = {}
    for name, ignore_merges in (("tokenizer-bpe", False), ("tokenizer-bpe-words", True)):
        tokenizer = base(ignore_merges)
        path = os.path.join(HERE, name + ".json")
        tokenizer.save(path, pretty=False)
        if ignore_merges:
            respell_merges(path)
        out[name] = vectors(Tokenizer.from_file(path))
    with open(os.path.join(HERE, "tokenizer-vectors.json"), "w", encoding="utf-8") as file:
        json.dump(out, file, ensure_ascii=True, indent=0)
        file.write("\n")


main()
