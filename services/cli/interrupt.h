#pragma once
#include <stdbool.h>

/** From now on Ctrl-C and SIGTERM only set a flag; a second one ends the program. */
void cli_interrupt_watch(void);
bool cli_interrupted(void);
