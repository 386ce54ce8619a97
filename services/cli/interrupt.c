#include "services/cli/interrupt.h"
#include <signal.h>
#include <stddef.h>

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
