#pragma once
/* Many requests under way at once, streamed and not, greedy and seeded, and their texts; all run to
 * their last token. What they are follows from `first` and `count`, so that the same ones can be
 * recorded undisturbed. */
#include "tests/e2e/suite.h"

enum { HERD_MAX = 32 };

struct herd_ask {
    bool streamed;
    struct stream stream;  /* streamed */
    struct http_conn conn; /* else */
    char *text;            /* once it was read */
};
struct herd {
    struct suite *suite;
    uint32_t count;
    struct herd_ask asks[HERD_MAX];
};

/** Sends requests `first` .. `first` + `count` - 1 of `tokens` tokens each. */
void herd_send(struct herd *herd, struct suite *suite, uint32_t first, uint32_t count, int tokens);
/** Until every streamed one has begun. */
void herd_begun(struct herd *herd);
/** Until all is ready and has Redis: a gateway is ready without. */
void herd_await_services(struct suite *suite);
/** All to their ends; each must be answered in full. */
void herd_rest(struct herd *herd);
/** The texts are those of another herd, the same requests. */
void herd_equal(const struct herd *got, const struct herd *want);
void herd_close(struct herd *herd);
#define auto_herd __attribute__((cleanup(herd_close))) struct herd
