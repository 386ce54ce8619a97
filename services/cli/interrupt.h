#pragma once
#include <stdbool.h>
#include <stdint.h>

/** From now on Ctrl-C and SIGTERM only set a flag; a second one ends the program. */
void cli_interrupt_watch(void);
bool cli_interrupted(void);
/** Waits, or until Ctrl-C: then false. */
bool cli_interrupt_wait(uint32_t ms);
