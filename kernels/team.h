#pragma once
#include "common/base/error.h"
#include <stdint.h>

enum { FX_TEAM_THREADS_MAX = 256 };

/** N compute threads (the caller is one) behind a barrier that spins, then sleeps on a futex. */
typedef struct fx_team fx_team;
/** Works on chunk `chunk`; chunks are independent, so who takes which changes no result. */
typedef void fx_team_work(void *arg, uint32_t chunk);

/** Starts threads - 1 threads. @pre 1 <= threads <= FX_TEAM_THREADS_MAX @own caller, fx_team_free
 *  @err RESOURCE_EXHAUSTED */
FX_MUST bool fx_team_open(uint32_t threads, fx_team **out, fx_error *err);
/** Runs work(arg, 0..chunks-1), each once, on all threads, which take chunks from one counter;
 *  returns when all are done. A single chunk runs on the caller. @thread the opener's */
void fx_team_run(fx_team *team, uint32_t chunks, fx_team_work *work, void *arg);
uint32_t fx_team_threads(const fx_team *team);
/** Joins the threads; NULL is fine. */
void fx_team_free(fx_team *team);
FX_DEFINE_AUTO(fx_team, fx_team_free)
