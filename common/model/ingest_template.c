#include "common/model/config_json.h"
#include "common/model/ingest_internal.h"

enum { TEMPLATE_BYTES_MAX = 1 << 20 };

static FX_MUST bool set_template(struct fx_bytes *config, const struct fx_bytes *source,
                                 fx_error *err) {
    static const struct fx_json_limits limits = {64, 1 << 20};
    fx_auto(json_t) root = NULL;
    fx_span text = config->at ? fx_bytes__span(config) : fx_span_str("{}");
    if (!fx_config__json(text, limits, &root, err)) return fx_wrap(err, "tokenizer_config.json");
    json_t *template = json_stringn((const char *)source->at, source->len);
    if (!template) return fx_fail(err, FX_INVALID_ARGUMENT, "chat_template.jinja is not UTF-8");
    if (json_object_set_new(root, "chat_template", template) != 0)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for the chat template");
    char *whole = json_dumps(root, JSON_INDENT(2));
    if (!whole) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for the chat template");
    fx_bytes__free(config);
    *config = (struct fx_bytes){(uint8_t *)whole, strlen(whole)};
    return true;
}

bool fx_import__template(struct fx_import *import, fx_error *err) {
    char path[FX_PATH_MAX];
    fx_auto_bytes source = {0};
    if (!fx_file__path(path, err, "%s/chat_template.jinja", import->opts->folder)) return false;
    if (!fx_file__exists(path)) return true;
    return fx_file__read(path, TEMPLATE_BYTES_MAX, &source, err) &&
           set_template(&import->side[FX_SIDE_TOKENIZER_CONFIG], &source, err);
}
