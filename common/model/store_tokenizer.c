#include "common/model/store_tokenizer.h"
#include "common/model/store_file.h"
#include "common/model/store_names.h"

enum { TOKENIZER_BYTES_MAX = 64 * 1024 * 1024 };

void fx_store__tokenizer_digest(fx_span tokenizer_json, fx_span tokenizer_config_json,
                                char out[FX_SHA256_HEX]) {
    uint8_t both[2 * FX_SHA256_BYTES], digest[FX_SHA256_BYTES];
    fx_sha256(tokenizer_json, both);
    fx_sha256(tokenizer_config_json, both + FX_SHA256_BYTES);
    fx_sha256((fx_span){both, sizeof both}, digest);
    fx_hex((fx_span){digest, sizeof digest}, out);
}

/* The first model that has the tokenizer. */
struct search {
    const char *dir, *digest;
    bool found;
    char folder[FX_PATH_MAX];
};

static FX_MUST bool look(void *ctx, const char *name, fx_error *err) {
    struct search *search = ctx;
    struct fx_model_info info;
    if (search->found || !fx_store_info(search->dir, name, &info, NULL) ||
        strcmp(info.tokenizer_digest, search->digest) != 0)
        return true;
    search->found = true;
    return fx_file__path(search->folder, err, "%s/%s/%s", search->dir, name, info.version);
}

static FX_MUST bool read_both(const char *folder, struct fx_bytes *tokenizer,
                              struct fx_bytes *config, fx_error *err) {
    char path[FX_PATH_MAX];
    if (!fx_file__path(path, err, "%s/tokenizer.json", folder) ||
        !fx_file__read(path, TOKENIZER_BYTES_MAX, tokenizer, err) ||
        !fx_file__path(path, err, "%s/tokenizer_config.json", folder))
        return false;
    return !fx_file__exists(path) || fx_file__read(path, TOKENIZER_BYTES_MAX, config, err);
}

bool fx_store_tokenizer(const char *dir, const char *digest, struct fx_bytes *tokenizer,
                        struct fx_bytes *config, fx_error *err) {
    struct search search = {.dir = dir, .digest = digest};
    uint8_t ignored[FX_SHA256_BYTES];
    char got[FX_SHA256_HEX];
    if (!fx_unhex(fx_span_str(digest), ignored, sizeof ignored))
        return fx_fail(err, FX_INVALID_ARGUMENT, "a tokenizer's digest is 64 hex digits");
    if (!fx_store__names(dir, look, &search, err)) return false;
    if (!search.found) return fx_fail(err, FX_NOT_FOUND, "no model has this tokenizer");
    fx_auto_bytes json = {0};
    fx_auto_bytes config_json = {0};
    if (!read_both(search.folder, &json, &config_json, err)) return false;
    fx_store__tokenizer_digest(fx_bytes__span(&json), fx_bytes__span(&config_json), got);
    if (strcmp(got, digest) != 0)
        return fx_fail(err, FX_DATA_LOSS, "the tokenizer's files in '%.150s' have changed",
                       search.folder);
    *tokenizer = (struct fx_bytes){fx_take(json.at), json.len};
    *config = (struct fx_bytes){fx_take(config_json.at), config_json.len};
    return true;
}
