#pragma once
#include "tests/integ/queue/rig.h"

/** Who waits for generation n, whose tokens are n * 100 + i: fails the test unless they come in
 *  order, each once. */
struct reader {
    fx_watch *watch; /* NULL: closed */
    uint32_t n, told;
    enum fx_finish finish; /* NONE: more may come */
};

void reader_open(struct rig *rig, uint32_t n, struct reader *reader);
/** Runs the loop until the end has been told; fails the test after 3 s. */
void reader_wait(struct rig *rig, const struct reader *reader);
void reader_close(struct reader *reader);
