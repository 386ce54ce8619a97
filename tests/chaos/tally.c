#include "tests/chaos/tally.h"
#include <stdlib.h>
#include "common/base/error.h"

void tally_resume(struct tally *tally, double ms, double allowed_ms) {
    FX_ASSERT(tally->resume_count < TALLY_RESUMES_MAX);
    tally->resume_ms[tally->resume_count++] = ms;
    tally->resumes_late += ms > allowed_ms;
}

static int by_size(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

double tally_resume_ms(struct tally *tally, double share) {
    if (!tally->resume_count) return 0;
    qsort(tally->resume_ms, tally->resume_count, sizeof *tally->resume_ms, by_size);
    return tally->resume_ms[(uint32_t)(share * (tally->resume_count - 1) + 0.5)];
}

void tally_print(struct tally *tally, FILE *out) {
    (void)fprintf(
        out,
        "%u answers (%u generations): %u lost, %u repeated, %u differing\n"
        "%u kills (%u of running generations), %u stops (%u); %u generations were in "
        "prefill; %u traps nobody met\n"
        "clients asked again %u times, came back %u times; %llu pre-emptions\n"
        "time to resume: %u measured, p50 %.0f ms, p99 %.0f ms, longest %.0f ms, %u late\n",
        tally->answers, tally->choices, tally->lost, tally->repeated, tally->differing,
        tally->kills, tally->kills_hit, tally->stops, tally->stops_hit, tally->in_prefill,
        tally->unsprung, tally->asked_again, tally->came_back,
        (unsigned long long)tally->preemptions, tally->resume_count, tally_resume_ms(tally, 0.5),
        tally_resume_ms(tally, 0.99), tally_resume_ms(tally, 1), tally->resumes_late);
}
