#pragma once
/* What a chaos run came to. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { TALLY_RESUMES_MAX = 20000 };

struct tally {
    uint32_t answers, choices;          /* judged */
    uint32_t lost, repeated, differing; /* no end or an error; a token twice; another text or end */
    uint32_t kills, stops;              /* done */
    uint32_t kills_hit, stops_hit;      /* with a generation running that it concerned */
    uint32_t in_prefill;             /* generations without a token when their worker was killed */
    uint32_t unsprung;               /* traps nobody met */
    uint32_t asked_again, came_back; /* by clients: before they were admitted, after */
    uint32_t resume_count;
    uint32_t resumes_late; /* took longer than is allowed */
    double resume_ms[TALLY_RESUMES_MAX];
    uint64_t preemptions;
};

void tally_resume(struct tally *tally, double ms, double allowed_ms);
/** Percentile of the times to resume; 0: there are none. */
double tally_resume_ms(struct tally *tally, double share);
void tally_print(struct tally *tally, FILE *out);
