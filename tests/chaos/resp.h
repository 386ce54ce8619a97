#pragma once
/* What Redis and its clients say to each other, as far as a proxy must understand it. */
#include "common/base/span.h"

enum { RESP_WORDS_MAX = 64, RESP_ID_LEN = 32 };

/** Bytes of the first value, whatever is nested in it; 0: it is not whole yet. */
size_t resp_length(fx_span bytes);
/** The words of a command or a list of bulk strings, at most RESP_WORDS_MAX of them. Borrowed. */
size_t resp_words(fx_span value, fx_span words[RESP_WORDS_MAX]);
/** The next generation's id after `*at` in a pull's reply: 32 hex digits before an integer. */
bool resp_next_id(fx_span value, size_t *at, char id[RESP_ID_LEN + 1]);
