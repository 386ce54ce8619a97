#pragma once
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/** A completed batch on its way from the completion queue's thread to the one that owns the call.
 *  Each tag is embedded in a call and out at most once, so a list of them is bounded. */
struct fx_done_tag {
    struct fx_client_call *call;
    void (*fn)(struct fx_client_call *call, bool ok);
    bool ok;
    struct fx_done_tag *next;
};

/** Tags in order of completion; wakes its reader by an eventfd (a loop) or a condition (a thread
 *  that waits). */
struct fx_sink {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct fx_done_tag *head, *tail;
    int fd; /* -1: no eventfd */
};

void fx_sink__init(struct fx_sink *sink, int fd);
void fx_sink__done(struct fx_sink *sink);
void fx_sink__push(struct fx_sink *sink, struct fx_done_tag *tag);
/** NULL when empty. */
struct fx_done_tag *fx_sink__pop(struct fx_sink *sink);
struct fx_done_tag *fx_sink__wait(struct fx_sink *sink);
