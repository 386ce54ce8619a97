#pragma once
#include "common/base/error.h"

/** Whether scripts of web pages may ask a server from a browser (the fetch standard's CORS). Keys
 *  travel in headers of the script's own, so credentials of the browser's are never allowed.
 *  Borrowed while the server lives; zeroed: off, no header of it is sent and OPTIONS is a request
 *  like any other. */
struct fx_http_cors {
    const char *origins; /* "https://a.example,http://localhost:3000" or "*"; NULL or "": off */
    const char *methods; /* that a page may use, "GET, POST" */
    const char *headers; /* that a page may send, where its preflight names none we can repeat */
    const char *exposed; /* of the answer, that a page may read */
};

enum {
    FX_HTTP_ORIGINS_MAX = 64,
    FX_HTTP_ORIGIN_BYTES_MAX = 256,
    FX_HTTP_CORS_HEADERS_MAX = 1024, /* bytes of a preflight's header names; more: not repeated */
};

/** Is it "", "*", or a list by comma of scheme://host[:port] as browsers write them: lower case,
 *  nothing behind the port, none that is the scheme's own? @err INVALID_ARGUMENT saying what */
FX_MUST bool fx_http_cors_check(const char *origins, fx_error *err);
