#include "common/model/tokenizer_load.h"
#include "common/base/heap.h"

/* "text" or {"content": "text", ...}; null for none. */
static const char *token_text(const json_t *config, const char *key) {
    const json_t *token = json_object_get(config, key);
    if (json_is_object(token)) token = json_object_get(token, "content");
    return json_string_value(token);
}

static FX_MUST bool load_token(struct fx_tokenizer *tokenizer, const json_t *config,
                               const char *key, char **text, uint32_t *id, fx_error *err) {
    const char *name = token_text(config, key);
    if (!(*text = fx_strdup(name ? name : "")))
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %s", key);
    if (!**text || fx_tokenizer_added_id(tokenizer, fx_span_str(*text), id)) return true;
    return fx_fail(err, FX_UNIMPLEMENTED, "%s '%.64s' is not among the added tokens", key, *text);
}

/* transformers adds these to the tokenizer where it lacks them; we want them in it already. */
static FX_MUST bool check_added(const struct fx_tokenizer *tokenizer, json_t *config,
                                fx_error *err) {
    const char *number;
    json_t *token;
    json_object_foreach(json_object_get(config, "added_tokens_decoder"), number, token) {
        const json_t *content = json_object_get(token, "content");
        uint32_t id;
        if (!json_is_string(content) ||
            !fx_tokenizer_added_id(tokenizer, fx_json__span(content), &id))
            return fx_fail(err, FX_UNIMPLEMENTED,
                           "added_tokens_decoder: token %.32s is not in tokenizer.json", number);
    }
    return true;
}

/* Flags that are written out replace the post-processor, as in transformers. */
static void apply_flags(struct fx_tokenizer *tokenizer, const json_t *config) {
    const json_t *bos = json_object_get(config, "add_bos_token");
    const json_t *eos = json_object_get(config, "add_eos_token");
    if (!json_is_boolean(bos) && !json_is_boolean(eos)) return;
    tokenizer->prefix.count = tokenizer->suffix.count = 0;
    if (json_is_true(bos) && tokenizer->bos_id != FX_ID_NONE)
        tokenizer->prefix = (struct fx_affix){{tokenizer->bos_id}, 1};
    if (json_is_true(eos) && tokenizer->eos_id != FX_ID_NONE)
        tokenizer->suffix = (struct fx_affix){{tokenizer->eos_id}, 1};
}

/* A string, or a list of {"name", "template"} of which we take "default". */
static const char *find_template(const json_t *config) {
    const json_t *given = json_object_get(config, "chat_template");
    for (size_t i = 0; i < json_array_size(given); i++) {
        const json_t *named = json_array_get(given, i);
        const char *name = json_string_value(json_object_get(named, "name"));
        if (name && strcmp(name, "default") == 0)
            return json_string_value(json_object_get(named, "template"));
    }
    return json_string_value(given);
}

static FX_MUST bool load_template(struct fx_tokenizer *tokenizer, const json_t *config,
                                  fx_error *err) {
    const char *source = find_template(config);
    if (!source) return true;
    tokenizer->chat_template = fx_strdup(source);
    return tokenizer->chat_template ||
           fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for the chat template");
}

bool fx_loader__config(struct fx_tokenizer *tokenizer, json_t *config, fx_error *err) {
    if (!check_added(tokenizer, config, err)) return false;
    if (!load_token(tokenizer, config, "bos_token", &tokenizer->bos_text, &tokenizer->bos_id,
                    err) ||
        !load_token(tokenizer, config, "eos_token", &tokenizer->eos_text, &tokenizer->eos_id, err))
        return false;
    apply_flags(tokenizer, config);
    return load_template(tokenizer, config, err);
}
