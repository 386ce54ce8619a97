#pragma once
#include "common/base/error.h"
#include <stdint.h>

/** Who owns which page of the KV pool: reference-counted pages, one page table a sequence. A page
 *  holds `page_tokens` consecutive positions of every layer, keys and values. This module counts
 *  pages; their bytes belong to the engine. All memory is taken at open. @thread one owner */
typedef struct fx_kv_pool fx_kv_pool;

/** In a table: no page, the position is not written yet or has left the window. */
#define FX_KV_NO_PAGE UINT32_MAX

struct fx_kv_pool_opts {
    uint32_t pages;       /* in the pool, >= 1 */
    uint32_t page_tokens; /* 16 or 64 */
    uint32_t sequences;   /* page tables */
    uint32_t context_max; /* tokens one table can hold */
    uint32_t window;      /* every layer sees the last `window` positions only; 0 = all of them */
};

/** @own caller, fx_kv_pool_free() @err INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
FX_MUST bool fx_kv_pool_open(const struct fx_kv_pool_opts *opts, fx_kv_pool **out, fx_error *err);
void fx_kv_pool_free(fx_kv_pool *kv);
FX_DEFINE_AUTO(fx_kv_pool, fx_kv_pool_free)

/** Gives back the pages that no position >= `next` can see, then takes the missing pages of
 *  [next, end). False: the pool has too few, and nothing was taken. @pre end <= context_max */
FX_MUST bool fx_kv_reserve(fx_kv_pool *kv, uint32_t sequence, uint32_t next, uint32_t end);
/** Pages fx_kv_reserve would take beyond those it gives back; 0 when it needs none. */
uint32_t fx_kv_missing(const fx_kv_pool *kv, uint32_t sequence, uint32_t next, uint32_t end);
/** Drops every page of a sequence; those nobody else holds return to the pool. */
void fx_kv_clear(fx_kv_pool *kv, uint32_t sequence);
/** Makes the empty table of `to` hold the first `pages` pages of `from` too. Whole pages only: a
 *  shared page is never written again. */
void fx_kv_share(fx_kv_pool *kv, uint32_t from, uint32_t to, uint32_t pages);

/** Most pages a sequence of `tokens` holds at once when it grows by at most `rows` a step. */
uint32_t fx_kv_pages_for(const fx_kv_pool *kv, uint32_t tokens, uint32_t rows);
/** All tables, as a step wants them; borrowed, changed by reserve, clear and share.
 *  @shape [sequences][stride], stride = ceil(context_max / page_tokens) */
const uint32_t *fx_kv_tables(const fx_kv_pool *kv, uint32_t *stride);
uint32_t fx_kv_pages(const fx_kv_pool *kv);
uint32_t fx_kv_pages_free(const fx_kv_pool *kv);
uint32_t fx_kv_pages_held(const fx_kv_pool *kv, uint32_t sequence);
