#pragma once

/** Paths of PEM files. All three or none: with them both sides show a certificate of `ca` (mTLS).
 *  All NULL (or ""): plaintext. */
struct fx_tls {
    const char *ca, *cert, *key;
};
