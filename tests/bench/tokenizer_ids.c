#include "tests/bench/bench.h"
#include "common/base/heap.h"
#include "common/model/detok.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not a measurement: our half of tools/oracle/compare_tokenizers.py. In on stdin, for each text:
 * its kind, its length in bytes (both u32 in the machine's order), the bytes. A text of kind IDS is
 * token ids to decode. Out on stdout: the number of ids, the ids, the length of their text, the
 * text. */

enum { USER, TEMPLATE, PROMPT, IDS, TEXT_BYTES_MAX = 4 << 20 };

struct row {
    uint32_t kind, len;
    uint8_t *text;
    uint32_t *ids;
};

static FX_MUST bool read_file(const char *path, uint8_t **out, size_t *len, fx_error *err) {
    fx_auto(FILE) file = fopen(path, "rbe");
    fx_auto(uint8_t) at = fx_alloc(FX_TOKENIZER_FILE_BYTES_MAX, 1);
    if (!file) return fx_fail_errno(err, "open '%s'", path);
    if (!at) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for '%s'", path);
    *len = fread(at, 1, FX_TOKENIZER_FILE_BYTES_MAX, file);
    *out = fx_take(at);
    return true;
}

static FX_MUST bool open_tokenizer(const char *path, fx_tokenizer **out, fx_error *err) {
    struct fx_tokenizer_files files = {0};
    fx_auto(uint8_t) json = NULL;
    if (!read_file(path, &json, &files.tokenizer_json.len, err)) return false;
    files.tokenizer_json.at = json;
    return fx_tokenizer_new(&files, out, err);
}

static FX_MUST bool to_ids(const fx_tokenizer *tokenizer, const struct row *row, struct fx_ids *out,
                           fx_error *err) {
    struct fx_segment segment = {
        {row->text, row->len},
        row->kind != USER
    };
    if (row->kind == IDS) {
        memcpy(out->at, row->text, row->len);
        out->len = row->len / sizeof(uint32_t);
        return true;
    }
    return fx_tokenizer_encode(tokenizer, (struct fx_segments){&segment, 1},
                               row->kind == PROMPT ? FX_ENCODE_PROMPT : FX_ENCODE_PLAIN, out, err);
}

static void write_number(size_t number) {
    uint32_t value = (uint32_t)number;
    (void)fwrite(&value, sizeof value, 1, stdout);
}

static FX_MUST bool write_text(const fx_tokenizer *tokenizer, struct fx_ids ids, fx_error *err) {
    size_t cap = (ids.len + 1) * fx_detok_room(tokenizer);
    fx_auto(uint8_t) at = fx_alloc(cap, 1);
    fx_buf text = {at, 0, cap};
    struct fx_detok detok;
    if (!at) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a text");
    fx_detok_init(&detok, tokenizer);
    for (size_t i = 0; i < ids.len; i++)
        fx_detok_push(&detok, ids.at[i], &text);
    fx_detok_flush(&detok, &text);
    write_number(text.len);
    (void)fwrite(text.at, 1, text.len, stdout);
    return true;
}

static FX_MUST bool answer(const fx_tokenizer *tokenizer, const struct row *row, fx_error *err) {
    struct fx_ids ids = {row->ids, 0, fx_tokenizer_ids_max(row->len)};
    if (!to_ids(tokenizer, row, &ids, err)) return false;
    write_number(ids.len);
    (void)fwrite(ids.at, sizeof ids.at[0], ids.len, stdout);
    return write_text(tokenizer, ids, err);
}

static FX_MUST bool run(int argc, char **argv, fx_error *err) {
    fx_auto(fx_tokenizer) tokenizer = NULL;
    fx_auto(uint8_t) text = fx_alloc(TEXT_BYTES_MAX, 1);
    fx_auto(void) ids = fx_alloc(fx_tokenizer_ids_max(TEXT_BYTES_MAX), sizeof(uint32_t));
    struct row row = {.text = text, .ids = ids};
    if (argc != 1) return fx_fail(err, FX_INVALID_ARGUMENT, "usage: tokenizer-ids TOKENIZER_JSON");
    if (!text || !ids) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for texts");
    if (!open_tokenizer(argv[0], &tokenizer, err)) return false;
    while (fread(&row.kind, sizeof row.kind, 1, stdin) == 1) {
        if (fread(&row.len, sizeof row.len, 1, stdin) != 1 || row.len > TEXT_BYTES_MAX ||
            fread(text, 1, row.len, stdin) != row.len)
            return fx_fail(err, FX_DATA_LOSS, "stdin is short");
        if (!answer(tokenizer, &row, err)) return false;
    }
    return true;
}

const struct bench bench_tokenizer_ids = {"tokenizer-ids",
                                          "for tools/oracle/tokenizers.sh: TOKENIZER_JSON", run};
