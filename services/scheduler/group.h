#pragma once
#include "services/scheduler/op.h"

enum { GROUPS_MAX = 64, CHOICES_MAX = FX_QUEUE_GROUP_MAX };

struct submission;
/** The generations of one request, admitted together or refused together. In the call's arena. */
struct group {
    struct submission *submission;
    Fractal__V1__GenerationTask *task; /* of each, but for its id and sampling.choice */
    uint32_t weight, count;
    struct fx_submit_member *members; /* [count] */
    uint32_t *choices;                /* [count] sampling.choice */
    Fractal__V1__GroupResult result;
    bool ended;
};

/** A call with groups. */
struct submission {
    struct op *op;
    uint32_t count, left; /* groups; of them, not ended */
    struct group *groups;
    void (*end)(struct submission *submission); /* all groups have ended: ends the call */
};

/* group.c; on the loop's thread, group_refuse also before */
/** Asks for its admission; group_end follows, perhaps from inside. */
void group_start(struct group *group);
void group_refuse(struct group *group, const fx_error *err, uint32_t retry_after_ms);
