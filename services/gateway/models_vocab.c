#include <string.h>
#include "services/gateway/models_internal.h"

static struct gw_vocab_slot *slot_find(struct gw_models *models, const char *digest) {
    for (size_t i = 0; i < models->vocab_count; i++)
        if (strcmp(models->vocabs[i].digest, digest) == 0) return &models->vocabs[i];
    return NULL;
}

static bool digest_used(const struct gw_models *models, const char *digest) {
    for (size_t i = 0; i < models->count; i++)
        if (strcmp(models->list[i].digest, digest) == 0) return true;
    return false;
}

static void unused_drop(struct gw_models *models) {
    for (size_t i = models->vocab_count; i-- > 0;) {
        if (digest_used(models, models->vocabs[i].digest)) continue;
        gw_vocab_unref(models->vocabs[i].vocab);
        models->vocabs[i] = models->vocabs[--models->vocab_count];
    }
}

void gw_models__bind(struct gw_models *models) {
    unused_drop(models);
    for (size_t i = 0; i < models->count; i++) {
        struct gw_model *model = &models->list[i];
        struct gw_vocab_slot *slot = slot_find(models, model->digest);
        if (!slot) { /* there is room: at most one slot a model */
            slot = &models->vocabs[models->vocab_count++];
            *slot = (struct gw_vocab_slot){0};
            memcpy(slot->digest, model->digest, sizeof slot->digest);
        }
        model->vocab = slot->vocab;
    }
    gw_models__vocabs(models);
}

bool gw_models__vocab_failed(const struct gw_models *models, const char *digest) {
    for (size_t i = 0; i < models->vocab_count; i++)
        if (strcmp(models->vocabs[i].digest, digest) == 0)
            return models->vocabs[i].state == GW_VOCAB_FAILED;
    return false;
}

static void slot_bind(struct gw_models *models, const struct gw_vocab_slot *slot) {
    for (size_t i = 0; i < models->count; i++)
        if (strcmp(models->list[i].digest, slot->digest) == 0) models->list[i].vocab = slot->vocab;
}

void gw_models__vocabs(struct gw_models *models) {
    for (size_t i = 0; i < models->vocab_count; i++) {
        struct gw_vocab_slot *slot = &models->vocabs[i];
        if (slot->state == GW_VOCAB_READY) continue;
        slot->state = gw_vocabs_want(models->opts.vocabs, slot->digest, &slot->vocab);
        if (slot->state == GW_VOCAB_READY) slot_bind(models, slot);
    }
}
