#pragma once
/* Clients of the cluster, many at a time. */
#include "tests/crowd/client.h"
#include "tests/chaos/cluster.h"

/** Asks on a thread of its own, first the gateway that is the number's turn. */
void crowd_ask(struct client *client, const struct request *request, const char *run);
/** Asks for all, `at_once` at a time, and fails the test when one is not answered well: what is
 *  true as long as nothing happens. @own caller, client_free() of each */
void crowd_record(struct client *clients, const struct request *requests, uint32_t count,
                  uint32_t at_once);
/** Waits for its answer, and fails the test unless it is the recorded one. */
void crowd_join_same(struct client *client, const struct client *recorded);
