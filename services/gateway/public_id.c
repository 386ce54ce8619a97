#include "services/gateway/public_id.h"
#include <stdio.h>
#include "common/base/hash.h"
#include "services/gateway/request.h"

enum { MODEL_BYTES = 4, NAME_BYTES = FX_GEN_ID_BYTES + MODEL_BYTES };

void gw_public_id_write(const struct gw_public_id *name, char out[GW_ANSWER_ID_MAX]) {
    uint8_t bytes[NAME_BYTES];
    char hex[2 * NAME_BYTES + 1];
    memcpy(bytes, name->id.bytes, FX_GEN_ID_BYTES);
    for (int i = 0; i < MODEL_BYTES; i++)
        bytes[FX_GEN_ID_BYTES + i] = (uint8_t)(name->model >> (24 - 8 * i));
    fx_hex((fx_span){bytes, sizeof bytes}, hex);
    (void)snprintf(out, GW_ANSWER_ID_MAX, "%s%s", name->shape->id_prefix, hex);
}

static const struct gw_shape *prefix_read(fx_span *text) {
    static const struct gw_shape *const shapes[] = {&gw_chat_shape, &gw_completion_shape};
    for (size_t i = 0; i < FX_COUNT(shapes); i++) {
        fx_span prefix = fx_span_str(shapes[i]->id_prefix);
        if (text->len < prefix.len || memcmp(text->at, prefix.at, prefix.len) != 0) continue;
        *text = (fx_span){text->at + prefix.len, text->len - prefix.len};
        return shapes[i];
    }
    return NULL;
}

bool gw_public_id_read(fx_span text, struct gw_public_id *out) {
    uint8_t bytes[NAME_BYTES];
    *out = (struct gw_public_id){.shape = prefix_read(&text)};
    if (!out->shape || text.len != 2 * NAME_BYTES || !fx_unhex(text, bytes, NAME_BYTES))
        return false;
    memcpy(out->id.bytes, bytes, FX_GEN_ID_BYTES);
    for (int i = 0; i < MODEL_BYTES; i++)
        out->model = out->model << 8 | bytes[FX_GEN_ID_BYTES + i];
    out->id = gw_choice_id(&out->id, 0);
    return true;
}

fx_gen_id gw_choice_id(const fx_gen_id *first, uint32_t index) {
    _Static_assert(GW_CHOICES_MAX <= 16, "an index has four bits");
    fx_gen_id id = *first;
    uint8_t *last = &id.bytes[FX_GEN_ID_BYTES - 1];
    *last = (uint8_t)((*last & 0xf0) | (index & 0x0f));
    return id;
}
