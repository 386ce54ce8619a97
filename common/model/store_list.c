#include <stdlib.h>
#include "common/model/store_file.h"
#include "common/model/store_names.h"

struct listing {
    const char *dir;
    struct fx_model_info *at;
    size_t count, cap;
};

static FX_MUST bool add(void *ctx, const char *name, fx_error *err) {
    struct listing *listing = ctx;
    struct fx_model_info info;
    if (!fx_store_info(listing->dir, name, &info, NULL)) return true;
    if (listing->count == FX_MODELS_MAX)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "more than %d models", FX_MODELS_MAX);
    if (listing->count == listing->cap) {
        size_t cap = listing->cap ? listing->cap * 2 : 16;
        struct fx_model_info *grown = fx_realloc(listing->at, cap, sizeof *grown);
        if (!grown) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for %zu models", cap);
        listing->at = grown;
        listing->cap = cap;
    }
    listing->at[listing->count++] = info;
    return true;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct fx_model_info *)a)->name, ((const struct fx_model_info *)b)->name);
}

bool fx_store_list(const char *dir, struct fx_model_list *out, fx_error *err) {
    struct listing listing = {.dir = dir};
    if (!fx_store__names(dir, add, &listing, err)) {
        free(listing.at);
        return false;
    }
    if (listing.count) qsort(listing.at, listing.count, sizeof *listing.at, by_name);
    *out = (struct fx_model_list){listing.at, listing.count};
    return true;
}
