#include "services/cli/interrupt.h"
#include <signal.h>
#include <stddef.h>
#include <unistd.h>
#include "common/base/clock.h"

enum { POLL_MS = 50 };

static volatile sig_atomic_t seen_;

static void on_signal(int number) {
    seen_ = number;
}

void cli_interrupt_watch(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool cli_interrupted(void) {
    return seen_ != 0;
}

bool cli_interrupt_wait(uint32_t ms) {
    for (uint64_t end_ms = fx_clock_ms() + ms; fx_clock_ms() < end_ms && !cli_interrupted();)
        (void)usleep(POLL_MS * 1000);
    return !cli_interrupted();
}
