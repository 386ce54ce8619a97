#pragma once
/* Clients of the cluster that go on asking while its services are replaced one by one. */
#include "tests/chaos/crowd.h"

enum { ROLLING_CLIENTS = 20 };

struct rolling_figures {
    uint32_t answered, came_back, asked_again;
};

/** From now on each client asks for one of the requests after the other. `run` is short, and
 * another each time. */
void rolling_begin(const char *run, const struct request *requests, const struct client *recorded,
                   uint32_t count);
/** SIGTERM; it must end well; another in its place, from the folder `bin` (NULL: this build),
 * becomes ready. Fails the test when an answer meanwhile is not the recorded one. */
void rolling_replace(struct service *service, const char *bin);
/** Waits for the answers under way; nothing may be left then. */
struct rolling_figures rolling_end(void);
