#include "common/model/tokenizer_load.h"
#include "common/base/heap.h"

FX_DEFINE_AUTO(json_t, json_decref)

static FX_MUST bool parse(fx_span bytes, json_t **out, fx_error *err) {
    json_error_t at;
    if (bytes.len > FX_TOKENIZER_FILE_BYTES_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%zu bytes, at most %d", bytes.len,
                       FX_TOKENIZER_FILE_BYTES_MAX);
    fx_auto(json_t) root = json_loadb((const char *)bytes.at, bytes.len, 0, &at);
    if (!root) return fx_fail(err, FX_INVALID_ARGUMENT, "line %d: %.120s", at.line, at.text);
    if (!json_is_object(root)) return fx_fail(err, FX_INVALID_ARGUMENT, "not a JSON object");
    *out = fx_take(root);
    return true;
}

static FX_MUST bool load_config(struct fx_tokenizer *tokenizer, fx_span bytes, fx_error *err) {
    fx_auto(json_t) config = NULL;
    if (!bytes.len) bytes = fx_span_str("{}");
    return parse(bytes, &config, err) && fx_loader__config(tokenizer, config, err);
}

static FX_MUST bool load_parts(struct fx_loader *loader, fx_error *err) {
    return fx_loader__check(loader, err) && fx_loader__normalizer(loader, err) &&
           fx_loader__pre_tokenizer(loader, err) && fx_loader__decoder(loader, err) &&
           fx_scratches__init(loader->tokenizer, err) && fx_loader__tokens(loader, err) &&
           fx_loader__symbols(loader, err) && fx_loader__merges(loader, err) &&
           fx_loader__added(loader, err) && fx_loader__affixes(loader, err);
}

static FX_MUST bool load_tokenizer(struct fx_tokenizer *tokenizer, fx_span bytes, fx_error *err) {
    fx_auto(json_t) root = NULL;
    if (!parse(bytes, &root, err)) return false;
    struct fx_loader loader = {.tokenizer = tokenizer, .root = root};
    fx_alphabet__init(&loader.alphabet);
    return load_parts(&loader, err);
}

bool fx_tokenizer_new(const struct fx_tokenizer_files *files, fx_tokenizer **out, fx_error *err) {
    fx_auto(fx_tokenizer) tokenizer = fx_alloc(1, sizeof *tokenizer);
    if (!tokenizer) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a tokenizer");
    tokenizer->bos_id = tokenizer->eos_id = FX_ID_NONE;
    if (!load_tokenizer(tokenizer, files->tokenizer_json, err))
        return fx_wrap(err, "tokenizer.json");
    if (!load_config(tokenizer, files->tokenizer_config_json, err))
        return fx_wrap(err, "tokenizer_config.json");
    *out = fx_take(tokenizer);
    return true;
}
