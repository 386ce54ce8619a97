#include "common/rpc/sink_internal.h"
#include <unistd.h>

void fx_sink__init(struct fx_sink *sink, int fd) {
    *sink = (struct fx_sink){.fd = fd};
    pthread_mutex_init(&sink->lock, NULL);
    pthread_cond_init(&sink->ready, NULL);
}

void fx_sink__done(struct fx_sink *sink) {
    pthread_mutex_destroy(&sink->lock);
    pthread_cond_destroy(&sink->ready);
}

void fx_sink__push(struct fx_sink *sink, struct fx_done_tag *tag) {
    uint64_t one = 1;
    pthread_mutex_lock(&sink->lock);
    bool was_empty = sink->head == NULL;
    tag->next = NULL;
    if (was_empty)
        sink->head = tag;
    else
        sink->tail->next = tag;
    sink->tail = tag;
    pthread_cond_signal(&sink->ready);
    if (was_empty && sink->fd >= 0) (void)!write(sink->fd, &one, sizeof one);
    pthread_mutex_unlock(&sink->lock);
}

static struct fx_done_tag *pop(struct fx_sink *sink) {
    struct fx_done_tag *tag = sink->head;
    if (tag) sink->head = tag->next;
    return tag;
}

struct fx_done_tag *fx_sink__pop(struct fx_sink *sink) {
    pthread_mutex_lock(&sink->lock);
    struct fx_done_tag *tag = pop(sink);
    pthread_mutex_unlock(&sink->lock);
    return tag;
}

struct fx_done_tag *fx_sink__wait(struct fx_sink *sink) {
    pthread_mutex_lock(&sink->lock);
    while (!sink->head)
        pthread_cond_wait(&sink->ready, &sink->lock);
    struct fx_done_tag *tag = pop(sink);
    pthread_mutex_unlock(&sink->lock);
    return tag;
}
