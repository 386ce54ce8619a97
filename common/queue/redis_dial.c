/* The transport: TCP, TLS over it, or a unix socket. */
#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "common/queue/redis_conn.h"

static const struct fx_redis_host *host_of(const fx_redis_conn *conn) {
    const struct fx_redis_url *url = conn->url;
    return conn->master.port ? &conn->master : &url->hosts[conn->sentinel % url->host_count];
}

bool fx_redis__is_sentinel(const fx_redis_conn *conn) {
    return conn->url->master[0] && !conn->master.port;
}

static FX_MUST bool bev_plain(fx_redis_conn *conn, fx_error *err) {
    conn->bev = bufferevent_socket_new(conn->base, -1, BEV_OPT_CLOSE_ON_FREE);
    return conn->bev || fx_fail(err, FX_UNAVAILABLE, "no memory for a Redis connection");
}

static FX_MUST bool bev_tls(fx_redis_conn *conn, fx_error *err) {
    SSL *ssl;
    if (!fx_redis__tls_new(conn->tls, host_of(conn)->name, &ssl, err)) return false;
    conn->bev = bufferevent_openssl_socket_new(conn->base, -1, ssl, BUFFEREVENT_SSL_CONNECTING,
                                               BEV_OPT_CLOSE_ON_FREE);
    if (conn->bev) return true;
    SSL_free(ssl);
    return fx_fail(err, FX_UNAVAILABLE, "no memory for a Redis connection");
}

static int connect_unix(fx_redis_conn *conn) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, conn->url->path, strlen(conn->url->path) + 1);
    return bufferevent_socket_connect(conn->bev, (struct sockaddr *)&address, sizeof address);
}

static int connect_tcp(fx_redis_conn *conn) {
    const struct fx_redis_host *host = host_of(conn);
    if (!*conn->dns)
        *conn->dns = evdns_base_new(conn->base, EVDNS_BASE_INITIALIZE_NAMESERVERS |
                                                    EVDNS_BASE_DISABLE_WHEN_INACTIVE);
    return bufferevent_socket_connect_hostname(conn->bev, *conn->dns, AF_UNSPEC, host->name,
                                               host->port);
}

bool fx_redis__dial(fx_redis_conn *conn, bufferevent_data_cb on_read, bufferevent_event_cb on_event,
                    fx_error *err) {
    if (!(conn->tls ? bev_tls(conn, err) : bev_plain(conn, err))) return false;
    bufferevent_setcb(conn->bev, on_read, NULL, on_event, conn);
    (void)bufferevent_enable(conn->bev, EV_READ | EV_WRITE);
    struct bufferevent *bev = conn->bev;
    int rc = conn->url->path[0] ? connect_unix(conn) : connect_tcp(conn);
    if (rc == 0 || conn->bev != bev) return true; /* or on_event has told already */
    return fx_fail(err, FX_UNAVAILABLE, "Redis connection: %s", strerror(errno));
}

void fx_redis__no_delay(const fx_redis_conn *conn) {
    int on = 1;
    if (conn->url->path[0]) return;
    (void)setsockopt(bufferevent_getfd(conn->bev), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static bool tls_error(const fx_redis_conn *conn, fx_error *err) {
    SSL *ssl = conn->tls ? bufferevent_openssl_get_ssl(conn->bev) : NULL;
    if (!ssl) return false;
    unsigned long code = bufferevent_get_openssl_error(conn->bev);
    long verdict = SSL_get_verify_result(ssl);
    if (verdict != X509_V_OK)
        fx_error_set(err, FX_UNAVAILABLE, "Redis's certificate: %s",
                     X509_verify_cert_error_string(verdict));
    else if (code)
        fx_error_set(err, FX_UNAVAILABLE, "Redis and TLS: %s", ERR_reason_error_string(code));
    return verdict != X509_V_OK || code;
}

void fx_redis__dial_error(const fx_redis_conn *conn, short what, fx_error *err) {
    int dns = bufferevent_socket_get_dns_error(conn->bev);
    const char *system = evutil_socket_error_to_string(EVUTIL_SOCKET_ERROR());
    if (dns)
        fx_error_set(err, FX_UNAVAILABLE, "Redis host '%.64s': %s", host_of(conn)->name,
                     evutil_gai_strerror(dns));
    else if (what & BEV_EVENT_EOF)
        fx_error_set(err, FX_UNAVAILABLE, "Redis closed the connection");
    else if (!tls_error(conn, err))
        fx_error_set(err, FX_UNAVAILABLE, "Redis connection: %s", system);
}
