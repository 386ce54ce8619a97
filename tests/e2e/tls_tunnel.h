#pragma once
/* Plain bytes in, TLS out: what the tests' HTTP client says reaches a gateway by HTTPS. */
#include <stdint.h>

struct tls_tunnel;
/** Listens on any port of 127.0.0.1; each connection is one to `port` there, whose certificate must
 *  be for that address and of an authority in `ca_file`, as that file is then.
 *  @own caller, tls_tunnel_close() */
struct tls_tunnel *tls_tunnel_open(uint16_t port, const char *ca_file);
uint16_t tls_tunnel_port(const struct tls_tunnel *tunnel);
/** Connections whose handshake failed, so far. @thread any */
uint32_t tls_tunnel_refused(const struct tls_tunnel *tunnel);
/** After its connections have ended; NULL is fine. */
void tls_tunnel_close(struct tls_tunnel *tunnel);
