#include "tests/bench/bench.h"
#include "common/base/heap.h"
#include "common/model/tokenizer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Encoding on one thread: fractal-bench tokenizer [TOKENIZER_JSON [CORPUS]]. Without a corpus one
 * is made: prose of common and of made-up words, numbers, code, and a tenth in other scripts. With
 * --write PATH it is written and nothing is measured, so that others can encode the same.
 * Processor time of the thread; the text goes in as pieces of 100 kB, as tiktoken and tokenizers
 * are fed by tools/oracle/compare_tokenizers.py. */

enum { CORPUS_BYTES = 8 << 20, PIECE_BYTES = 100000, ROUNDS = 9, CORPUS_BYTES_MAX = 256 << 20 };

struct corpus {
    uint8_t *at;
    size_t len;
};

static uint64_t seed_ = 0x9e3779b97f4a7c15U;
static uint32_t below(uint32_t limit) {
    seed_ ^= seed_ << 13;
    seed_ ^= seed_ >> 7;
    seed_ ^= seed_ << 17;
    return (uint32_t)(seed_ >> 32) % limit;
}

static void put(struct corpus *corpus, const char *text) {
    size_t len = strlen(text);
    if (corpus->len + len > CORPUS_BYTES) return;
    memcpy(corpus->at + corpus->len, text, len);
    corpus->len += len;
}

/* Words that are met often are met early in the list. */
static void put_common(struct corpus *corpus) {
    static const char *const words[] = {
        "the",    "of",      "and",     "to",     "in",      "is",       "that",     "was",
        "for",    "it",      "with",    "as",     "his",     "on",       "be",       "at",
        "by",     "I",       "this",    "had",    "not",     "are",      "but",      "from",
        "or",     "have",    "an",      "they",   "which",   "one",      "you",      "were",
        "her",    "all",     "she",     "there",  "would",   "their",    "we",       "him",
        "been",   "has",     "when",    "who",    "will",    "more",     "no",       "if",
        "out",    "so",      "said",    "what",   "up",      "its",      "about",    "into",
        "than",   "them",    "can",     "only",   "other",   "new",      "some",     "could",
        "time",   "these",   "two",     "may",    "then",    "do",       "first",    "any",
        "my",     "now",     "such",    "like",   "our",     "over",     "man",      "me",
        "even",   "most",    "made",    "after",  "also",    "did",      "many",     "before",
        "must",   "through", "years",   "where",  "much",    "your",     "way",      "well",
        "down",   "should",  "because", "each",   "just",    "those",    "people",   "state",
        "little", "good",    "very",    "make",   "world",   "still",    "own",      "see",
        "men",    "work",    "long",    "get",    "here",    "between",  "both",     "life",
        "being",  "under",   "never",   "day",    "same",    "another",  "know",     "while",
        "last",   "might",   "us",      "great",  "old",     "year",     "off",      "come",
        "since",  "against", "go",      "came",   "right",   "used",     "take",     "three",
        "system", "process", "machine", "memory", "network", "language", "function", "computer",
        "model",  "request", "service", "tenant", "answer",  "question", "evidence", "development"};
    uint32_t limit = below((uint32_t)FX_COUNT(words)) + 1;
    put(corpus, words[below(limit)]);
}

static void put_made(struct corpus *corpus) {
    static const char *const syllables[] = {"ka",  "ro",  "ment", "ti",  "ber", "li",
                                            "an",  "vo",  "ster", "del", "qui", "gen",
                                            "the", "mor", "ic",   "est"};
    for (uint32_t i = below(3) + 1; i > 0; i--)
        put(corpus, syllables[below((uint32_t)FX_COUNT(syllables))]);
}

static void put_number(struct corpus *corpus) {
    char text[16];
    (void)snprintf(text, sizeof text, "%u", below(1U << below(24)));
    put(corpus, text);
}

static void put_sentence(struct corpus *corpus) {
    static const char *const marks[] = {". ", ". ", ". ", "? ", "! ", ".\n", ".\n\n"};
    static const char *const between[] = {" ", " ",  " ",   " ",   " ", " ",
                                          " ", ", ", " - ", "'s ", "; "};
    put(corpus, "The ");
    for (uint32_t i = below(20) + 4; i > 0; i--) {
        uint32_t kind = below(100);
        (kind < 82 ? put_common : kind < 97 ? put_made : put_number)(corpus);
        if (i > 1) put(corpus, between[below((uint32_t)FX_COUNT(between))]);
    }
    put(corpus, marks[below((uint32_t)FX_COUNT(marks))]);
}

static void put_code(struct corpus *corpus) {
    put(corpus, "\n    for (size_t i = ");
    put_number(corpus);
    put(corpus, "; i < count; i++) {\n        ");
    put_made(corpus);
    put(corpus, "_");
    put_common(corpus);
    put(corpus, "[i] = parse(text.at + i, \"%s\\n\");\n    }\n");
}

static void put_other(struct corpus *corpus) {
    static const char *const texts[] = {
        "Все счастливые семьи похожи друг на друга. ",
        "床前明月光，疑是地上霜。",
        "Ein schöner Tag für die Brücke über den Fluß. ",
        "¿Dónde está el niño? ",
        "मैं काँच खा सकता हूँ। ",
        "나는 유리를 먹을 수 있어요. ",
        "👩‍💻🎉 ",
    };
    put(corpus, texts[below((uint32_t)FX_COUNT(texts))]);
}

static FX_MUST bool corpus_make(struct corpus *out, fx_error *err) {
    *out = (struct corpus){fx_alloc(CORPUS_BYTES, 1), 0};
    if (!out->at) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for the corpus");
    while (out->len < CORPUS_BYTES - 1024) {
        uint32_t kind = below(100);
        (kind < 80 ? put_sentence : kind < 88 ? put_code : put_other)(out);
    }
    return true;
}

static FX_MUST bool file_read(const char *path, struct corpus *out, fx_error *err) {
    fx_auto(FILE) file = fopen(path, "rbe");
    if (!file) return fx_fail_errno(err, "open '%s'", path);
    if (fseek(file, 0, SEEK_END) != 0) return fx_fail_errno(err, "seek in '%s'", path);
    long size = ftell(file);
    if (size < 0 || size > CORPUS_BYTES_MAX)
        return fx_fail(err, FX_OUT_OF_RANGE, "'%s' is too large", path);
    rewind(file);
    fx_auto(uint8_t) at = fx_alloc((size_t)size + 1, 1);
    if (!at) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for '%s'", path);
    if (fread(at, 1, (size_t)size, file) != (size_t)size)
        return fx_fail(err, FX_DATA_LOSS, "'%s' is short", path);
    *out = (struct corpus){fx_take(at), (size_t)size};
    return true;
}

static FX_MUST bool corpus_write(const char *path, fx_error *err) {
    struct corpus corpus;
    if (!corpus_make(&corpus, err)) return false;
    FILE *file = fopen(path, "wbe");
    bool ok = file && fwrite(corpus.at, 1, corpus.len, file) == corpus.len;
    ok = (!file || fclose(file) == 0) && ok;
    free(corpus.at);
    return ok || fx_fail_errno(err, "write '%s'", path);
}

static double thread_s(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* From `at`, at most PIECE_BYTES that end where a line does. */
static size_t piece_end(const struct corpus *corpus, size_t at) {
    size_t to = corpus->len - at < PIECE_BYTES ? corpus->len : at + PIECE_BYTES;
    while (to < corpus->len && to > at + 1 && corpus->at[to - 1] != '\n')
        to--;
    return to;
}

static FX_MUST bool round_run(const fx_tokenizer *tokenizer, const struct corpus *corpus,
                              size_t *tokens, fx_error *err) {
    static uint32_t ids[4 * PIECE_BYTES];
    *tokens = 0;
    for (size_t at = 0, to; at < corpus->len; at = to) {
        struct fx_ids out = {ids, 0, FX_COUNT(ids)};
        to = piece_end(corpus, at);
        struct fx_segment segment = {
            {corpus->at + at, to - at},
            false
        };
        if (!fx_tokenizer_encode(tokenizer, (struct fx_segments){&segment, 1}, FX_ENCODE_PLAIN,
                                 &out, err))
            return false;
        *tokens += out.len;
    }
    return true;
}

static FX_MUST bool measure(const fx_tokenizer *tokenizer, const struct corpus *corpus,
                            fx_error *err) {
    double mb_s[ROUNDS];
    size_t tokens = 0;
    for (size_t i = 0; i < ROUNDS; i++) {
        double begun = thread_s();
        if (!round_run(tokenizer, corpus, &tokens, err)) return false;
        mb_s[i] = (double)corpus->len / (thread_s() - begun) / 1e6;
    }
    double median = bench_median(mb_s, ROUNDS);
    (void)printf("fractal: %.1f MB/s (best %.1f, worst %.1f), %zu bytes, %zu tokens, one thread\n",
                 median, mb_s[ROUNDS - 1], mb_s[0], corpus->len, tokens);
    return true;
}

static FX_MUST bool tokenizer_open(const char *path, fx_tokenizer **out, fx_error *err) {
    struct corpus json;
    if (!file_read(path, &json, err)) return false;
    struct fx_tokenizer_files files = {
        {json.at, json.len},
        {NULL,    0       }
    };
    double begun = thread_s();
    bool ok = fx_tokenizer_new(&files, out, err);
    free(json.at);
    if (ok) (void)printf("%s: loaded in %.2f s\n", path, thread_s() - begun);
    return ok;
}

static FX_MUST bool run(int argc, char **argv, fx_error *err) {
    const char *path = FX_SOURCE_DIR "/models/fractal-tiny-moe/tokenizer.json";
    fx_auto(fx_tokenizer) tokenizer = NULL;
    struct corpus corpus;
    if (argc == 2 && strcmp(argv[0], "--write") == 0) return corpus_write(argv[1], err);
    if (!tokenizer_open(argc > 0 ? argv[0] : path, &tokenizer, err)) return false;
    if (argc > 1 ? !file_read(argv[1], &corpus, err) : !corpus_make(&corpus, err)) return false;
    bool ok = measure(tokenizer, &corpus, err);
    free(corpus.at);
    return ok;
}

const struct bench bench_tokenizer = {
    "tokenizer", "encoding on one thread: [TOKENIZER_JSON [CORPUS]] | --write CORPUS", run};
