#include "tests/e2e/tls_tunnel.h"
#include "tests/fx_test.h"
#include "common/base/error.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 64, BYTES = 16384, TICK_MS = 50 };

struct tls_tunnel {
    int fd;
    uint16_t port, to;
    const char *ca_file;
    pthread_t thread;
    atomic_uint refused, open;
    atomic_bool ending;
};
struct link {
    struct tls_tunnel *tunnel;
    int fd;
};

static int dial(uint16_t port) {
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&in, sizeof in) == 0) return fd;
    if (fd >= 0) (void)close(fd);
    return -1;
}

static SSL *handshake(const struct tls_tunnel *tunnel, SSL_CTX *ctx, int fd) {
    SSL *ssl = SSL_new(ctx);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
    bool ok = fd >= 0 && SSL_CTX_load_verify_locations(ctx, tunnel->ca_file, NULL) == 1 &&
              X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), "127.0.0.1") == 1 &&
              SSL_set_fd(ssl, fd) == 1 && SSL_connect(ssl) == 1;
    if (ok) return ssl;
    ERR_print_errors_fp(stderr);
    SSL_free(ssl);
    return NULL;
}

static bool out(int fd, SSL *ssl) {
    char bytes[BYTES];
    ssize_t len = recv(fd, bytes, sizeof bytes, 0);
    return len > 0 && SSL_write(ssl, bytes, (int)len) == (int)len;
}

static bool back(SSL *ssl, int fd) {
    char bytes[BYTES];
    int len = SSL_read(ssl, bytes, sizeof bytes);
    for (int done = 0; done < len;) {
        ssize_t sent = send(fd, bytes + done, (size_t)(len - done), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        done += (int)sent;
    }
    return len > 0;
}

static void pump(int fd, SSL *ssl, int far) {
    for (;;) {
        struct pollfd both[] = {
            {fd,  POLLIN, 0},
            {far, POLLIN, 0}
        };
        if (SSL_pending(ssl) == 0 && poll(both, 2, -1) < 0) return;
        if (both[0].revents && !out(fd, ssl)) return;
        if ((both[1].revents || SSL_pending(ssl)) && !back(ssl, fd)) return;
    }
}

static void *serve(void *argument) {
    struct link link = *(struct link *)argument;
    free(argument);
    int far = dial(link.tunnel->to);
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = handshake(link.tunnel, ctx, far);
    if (ssl)
        pump(link.fd, ssl, far);
    else
        link.tunnel->refused++;
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    if (far >= 0) (void)close(far);
    (void)close(link.fd);
    link.tunnel->open--;
    return NULL;
}

static void begin(struct tls_tunnel *tunnel, int fd) {
    struct link *link = malloc(sizeof *link);
    pthread_t thread;
    FX_ASSERT(link);
    *link = (struct link){tunnel, fd};
    tunnel->open++;
    FX_ASSERT(pthread_create(&thread, NULL, serve, link) == 0);
    (void)pthread_detach(thread);
}

static void *listening(void *argument) {
    struct tls_tunnel *tunnel = argument;
    while (!tunnel->ending) {
        struct pollfd one = {tunnel->fd, POLLIN, 0};
        if (poll(&one, 1, TICK_MS) <= 0) continue;
        int fd = accept4(tunnel->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) begin(tunnel, fd);
    }
    return NULL;
}

struct tls_tunnel *tls_tunnel_open(uint16_t port, const char *ca_file) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    struct tls_tunnel *tunnel = calloc(1, sizeof *tunnel);
    FX_ASSERT(tunnel);
    tunnel->to = port;
    tunnel->ca_file = ca_file;
    tunnel->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FX_ASSERT(bind(tunnel->fd, (struct sockaddr *)&in, sizeof in) == 0);
    FX_ASSERT(listen(tunnel->fd, BACKLOG) == 0);
    FX_ASSERT(getsockname(tunnel->fd, (struct sockaddr *)&in, &len) == 0);
    tunnel->port = ntohs(in.sin_port);
    FX_ASSERT(pthread_create(&tunnel->thread, NULL, listening, tunnel) == 0);
    return tunnel;
}

uint16_t tls_tunnel_port(const struct tls_tunnel *tunnel) {
    return tunnel->port;
}

uint32_t tls_tunnel_refused(const struct tls_tunnel *tunnel) {
    return tunnel->refused;
}

void tls_tunnel_close(struct tls_tunnel *tunnel) {
    if (!tunnel) return;
    tunnel->ending = true;
    (void)pthread_join(tunnel->thread, NULL);
    while (tunnel->open)
        (void)usleep(TICK_MS * 1000);
    (void)close(tunnel->fd);
    free(tunnel);
}
