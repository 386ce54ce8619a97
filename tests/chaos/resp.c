#include "tests/chaos/resp.h"
#include <stdlib.h>

/* The number of a header line ("*3\r\n", "$7\r\n"), and where the line ends; 0: it does not. */
static size_t line_end(fx_span bytes, size_t at, long long *number) {
    const uint8_t *end = at < bytes.len ? memchr(bytes.at + at, '\n', bytes.len - at) : NULL;
    if (!end) return 0;
    *number = strtoll((const char *)bytes.at + at + 1, NULL, 10);
    return (size_t)(end - bytes.at) + 1;
}

size_t resp_length(fx_span bytes) {
    size_t at = 0;
    for (long long values = 1; values > 0; values--) {
        long long number;
        size_t end = line_end(bytes, at, &number);
        if (!end) return 0;
        char kind = (char)bytes.at[at];
        if (kind == '*' && number > 0) values += number;
        at = kind == '$' && number >= 0 ? end + (size_t)number + 2 : end;
    }
    return at <= bytes.len ? at : 0;
}

size_t resp_words(fx_span value, fx_span words[RESP_WORDS_MAX]) {
    long long count, length = 0;
    size_t at = line_end(value, 0, &count), n = 0;
    if (!at || value.at[0] != '*') return 0;
    for (; n < RESP_WORDS_MAX && (long long)n < count && value.at[at] == '$'; n++) {
        size_t begin = line_end(value, at, &length);
        words[n] = (fx_span){value.at + begin, length > 0 ? (size_t)length : 0};
        at = begin + words[n].len + 2;
    }
    return n;
}

bool resp_next_id(fx_span value, size_t *at, char id[RESP_ID_LEN + 1]) {
    static const char head[] = "$32\r\n";
    enum { HEAD = sizeof head - 1, WHOLE = HEAD + RESP_ID_LEN + 3 /* \r\n: */ };
    const uint8_t *found;
    while (*at < value.len && (found = memmem(value.at + *at, value.len - *at, head, HEAD))) {
        size_t left = value.len - (size_t)(found - value.at);
        *at = (size_t)(found - value.at) + HEAD;
        if (left < WHOLE || found[WHOLE - 1] != ':') continue;
        memcpy(id, found + HEAD, RESP_ID_LEN);
        id[RESP_ID_LEN] = 0;
        return true;
    }
    return false;
}
