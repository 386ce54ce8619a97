#pragma once
#include "services/gateway/visit.h"

/** A client's way back to an answer: what the queue keeps of it, and what the client has. */
struct gw_rejoin {
    struct gw_public_id name;
    char model[GW_MODEL_NAME_MAX + 1];
    uint64_t created_s;
    struct gw_place had[GW_CHOICES_MAX];
    struct gw_rejoin_state {
        enum fx_gen_state state;
        enum fx_finish finish;
        uint32_t tokens;
    } states[GW_CHOICES_MAX];
    uint32_t asked; /* questions under way */
    struct gw_problem problem;
    bool failed; /* with `problem` */
    void (*found)(struct gw_visit *visit);
};

/** Makes the visit what the one that submitted the task was: request, prompt, model's name, number
 *  of choices. */
FX_MUST bool gw_rejoin_read(struct gw_visit *visit, const struct fx_gen_about *about,
                            struct gw_problem *problem);
/** Reads "12", or "12,8e" of two choices; "0" is the beginning of any number. False: it is no such
 *  thing. */
FX_MUST bool gw_places_read(fx_span text, struct gw_place *out, uint32_t count);
/** The client gets all tokens of the choice so far, and with `end` its finish. */
void gw_place_move(struct gw_choice *choice, bool end);
/** Where the client is in all choices: an event's `id`. */
void gw_places_write(const struct gw_visit *visit, fx_buf *out);
enum { GW_PLACES_MAX = GW_CHOICES_MAX * 12 }; /* bytes of it: ten digits, an "e" and a comma each */

/* generations.c: for either front. */
/** Finds the answer that visit->name names, refuses, or calls `found` with what the queue knows. */
void gw_rejoin_describe(struct gw_visit *visit, void (*found)(struct gw_visit *visit));
/** Sends it from visit->rejoin->had on. */
void gw_rejoin_follow(struct gw_visit *visit);
/** Of all choices: failed or cancelled if one is, finished if all are, running if one has begun. */
enum fx_gen_state gw_rejoin_state(const struct gw_visit *visit);
