#pragma once
/* A tokenizer of SentencePiece's kind, small enough to be read: a space is a piece's first letter,
 * and a text's first space is no part of it. */

enum { PIECES_BOS = 1, PIECES_EOS = 2, PIECES_SPACE = 3, PIECES_I = 5, PIECES_HI = 7 };

static const char pieces_json[] =
    "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true},"
    "{\"id\":1,\"content\":\"<|bos|>\",\"special\":true},"
    "{\"id\":2,\"content\":\"<|eos|>\",\"special\":true}],"
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":["
    "{\"type\":\"Prepend\",\"prepend\":\"\u2581\"},"
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\u2581\"}]},"
    "\"pre_tokenizer\":null,"
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":["
    "{\"SpecialToken\":{\"id\":\"<|bos|>\",\"type_id\":0}},"
    "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[],"
    "\"special_tokens\":{\"<|bos|>\":{\"id\":\"<|bos|>\",\"ids\":[1],\"tokens\":[\"<|bos|>\"]}}},"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":["
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\u2581\"},\"content\":\" \"},"
    "{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},"
    "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":\"<unk>\",\"fuse_unk\":true,"
    "\"byte_fallback\":false,\"ignore_merges\":false,"
    "\"vocab\":{\"<unk>\":0,\"<|bos|>\":1,\"<|eos|>\":2,\"\u2581\":3,\"H\":4,\"i\":5,\"\u2581H\":6,"
    "\"\u2581Hi\":7},\"merges\":[\"\u2581 H\",\"\u2581H i\"]}}";

static const char pieces_config_json[] =
    "{\"bos_token\":\"<|bos|>\",\"eos_token\":\"<|eos|>\",\"chat_template\":"
    "\"{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}\"}";
