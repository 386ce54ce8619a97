#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "common/base/error.h"

struct event_base;
/** A libevent loop on a thread of its own with a bounded inbox: how RPC handlers hand work to the
 *  thread that owns the Redis connection and the RPC clients. */
typedef struct fx_loop fx_loop;
enum { FX_LOOP_TURN_MS = 100 }; /* how often it notes that it turns */

/** `inbox_max`: posted jobs that wait. @own caller, fx_loop_free @err RESOURCE_EXHAUSTED */
FX_MUST bool fx_loop_open(uint32_t inbox_max, fx_loop **out, fx_error *err);
/** For opening clients on it, before fx_loop_start or in a job. */
struct event_base *fx_loop_base(fx_loop *loop);
/** Starts the thread. */
FX_MUST bool fx_loop_start(fx_loop *loop, fx_error *err);
/** Runs `fn(user)` on the loop's thread, in order. False: the inbox is full or the loop stopped;
 *  nothing will run. @thread any */
FX_MUST bool fx_loop_post(fx_loop *loop, void (*fn)(void *user), void *user);
/** As fx_loop_post, and waits until it ran; at once when the thread does not run.
 *  @thread any but the loop's */
FX_MUST bool fx_loop_call(fx_loop *loop, void (*fn)(void *user), void *user);
/** How long ago the loop last turned: not much over FX_LOOP_TURN_MS where its thread is sound.
 *  @thread any */
uint64_t fx_loop_silence_ms(const fx_loop *loop);
/** False: it has not turned for `ms`, and `reason` says so of `name`. @thread any */
bool fx_loop_turned_within(const fx_loop *loop, uint64_t ms, const char *name, char *reason,
                           size_t reason_size);
/** Runs what was posted, then ends the thread; the base stays usable on this thread, so that what
 *  lives on it can be freed before fx_loop_free. @thread the opener's */
void fx_loop_stop(fx_loop *loop);
/** Stops and frees the base. NULL is fine. */
void fx_loop_free(fx_loop *loop);
FX_DEFINE_AUTO(fx_loop, fx_loop_free)
