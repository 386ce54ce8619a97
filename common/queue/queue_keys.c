#include "common/queue/queue_keys.h"
#include <stdio.h>
#include "common/base/hash.h"

static fx_span done(struct fx_key *key, int len) {
    FX_ASSERT(len > 0 && len < FX_KEY_MAX);
    key->span = (fx_span){(const uint8_t *)key->text, (size_t)len};
    return key->span;
}

fx_span fx_key_model(struct fx_key *key, uint32_t model, const char *what) {
    return done(key, snprintf(key->text, sizeof key->text, "fx:{m%u}:%s", model, what));
}

fx_span fx_key_text(struct fx_key *key, uint32_t model, const char *what, fx_span text) {
    int len = text.len > 32 ? 32 : (int)text.len; /* an id or a tenant's number */
    return done(key, snprintf(key->text, sizeof key->text, "fx:{m%u}:%s:%.*s", model, what, len,
                              (const char *)text.at));
}

fx_span fx_key_gen(struct fx_key *key, uint32_t model, const char *what, const fx_gen_id *id) {
    char hex[2 * FX_GEN_ID_BYTES + 1];
    fx_hex((fx_span){id->bytes, sizeof id->bytes}, hex);
    return fx_key_text(key, model, what, fx_span_str(hex));
}

fx_span fx_key_number(struct fx_key *key, uint64_t number) {
    return done(key, snprintf(key->text, sizeof key->text, "%llu", (unsigned long long)number));
}

fx_span fx_key_id(struct fx_key *key, const fx_gen_id *id) {
    fx_hex((fx_span){id->bytes, sizeof id->bytes}, key->text);
    return done(key, 2 * FX_GEN_ID_BYTES);
}
