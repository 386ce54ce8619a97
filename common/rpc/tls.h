#pragma once

/** Paths of PEM files. All three or none: with them both sides show a certificate of `ca` (mTLS).
 *  All NULL (or ""): plaintext. Files that are replaced are taken by new connections
 *  (common/base/certificates.h); those that are open go on. */
struct fx_tls {
    const char *ca, *cert, *key;
};
