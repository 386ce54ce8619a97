#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/heap.h"
#include "services/cli/cli.h"

#define ROW(name, field, fallback, help)                                                           \
    { (name), FX_ENV_TEXT, offsetof(struct cli_settings, field), 0, 0, (fallback), NULL, (help) }

const struct fx_env_row cli_env[] = {
    ROW("FX_DATA_DIR", data_dir, "",
        "folder with api-key and bootstrap-token; else that of FX_BOOTSTRAP_TOKEN_FILE, else "
        ".fractal"),
    ROW("FX_BOOTSTRAP_TOKEN_FILE", token_file, "", "the administrator's token"),
    ROW("FX_API_KEY", api_key, "", "tenant key; else the data folder's api-key"),
    ROW("FX_GATEWAY_URL", gateway_url, "",
        "base URL of the gateway, or of several, parted by commas; else from FX_HTTP_ADDR"),
    ROW("FX_HTTP_ADDR", http_addr, "127.0.0.1:5000", "the gateway's HTTP address"),
    ROW("FX_TENANT_ADDR", tenant_addr, "127.0.0.1:50051", "the tenant service"),
    ROW("FX_SLICER_ADDR", slicer_addr, "127.0.0.1:50053", "the slicer service"),
    ROW("FX_TLS_CA", tls_ca, "", "PEM file, for mTLS to the services"),
    ROW("FX_TLS_CERT", tls_cert, "", "PEM file, for mTLS to the services"),
    ROW("FX_TLS_KEY", tls_key, "", "PEM file, for mTLS to the services"),
};
const size_t cli_env_count = FX_COUNT(cli_env);

bool cli_settings_load(struct cli_settings *settings, fx_error *err) {
    return fx_env_load(cli_env, cli_env_count, settings, err);
}

/* A server that listens on every address is reached on loopback. */
static const char *reachable(const char *addr, const char **host) {
    static const char *const all[] = {"0.0.0.0:", "[::]:"};
    *host = "";
    for (size_t i = 0; i < FX_COUNT(all); i++) {
        size_t len = strlen(all[i]);
        if (strncmp(addr, all[i], len) != 0) continue;
        *host = "127.0.0.1:";
        return addr + len;
    }
    return addr;
}

static FX_MUST bool url_add(struct cli_gateways *gateways, const char *text, size_t text_len,
                            fx_error *err) {
    if (gateways->count == CLI_GATEWAYS_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "FX_GATEWAY_URL: at most %d URLs",
                       CLI_GATEWAYS_MAX);
    char *out = gateways->url[gateways->count++];
    int len = snprintf(out, CLI_URL_MAX, "%.*s", (int)text_len, text);
    if (len < 0 || len >= CLI_URL_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "the gateway's URL is too long");
    if (strncmp(out, "http://", 7) != 0 && strncmp(out, "https://", 8) != 0)
        return fx_fail(err, FX_INVALID_ARGUMENT, "FX_GATEWAY_URL='%s': want http://host:port", out);
    while (len > 8 && out[len - 1] == '/')
        out[--len] = '\0';
    return true;
}

bool cli_gateways_read(const struct cli_settings *settings, struct cli_gateways *out,
                       fx_error *err) {
    char local[CLI_URL_MAX];
    const char *host, *addr = reachable(settings->http_addr, &host), *text = settings->gateway_url;
    out->count = 0;
    if (!*text) {
        (void)snprintf(local, sizeof local, "http://%s%s", host, addr);
        text = local;
    }
    for (;; text++) {
        size_t len = strcspn(text, ",");
        if (!url_add(out, text, len, err)) return false;
        text += len;
        if (!*text) return true;
    }
}

/* The first word of a file. */
static FX_MUST bool read_secret(const char *path, char out[CLI_SECRET_MAX], fx_error *err) {
    char text[CLI_SECRET_MAX];
    fx_auto(FILE) file = fopen(path, "re");
    if (!file) return fx_fail_errno(err, "%s", path);
    if (!fgets(text, sizeof text, file)) return fx_fail(err, FX_DATA_LOSS, "%s is empty", path);
    text[strcspn(text, " \t\r\n")] = '\0';
    if (!*text || strlen(text) == sizeof text - 1)
        return fx_fail(err, FX_DATA_LOSS, "%s: no secret in it", path);
    memcpy(out, text, sizeof text);
    return true;
}

static FX_MUST bool data_path(const struct cli_settings *settings, const char *name,
                              char out[CLI_PATH_MAX], fx_error *err) {
    const char *slash = strrchr(settings->token_file, '/');
    const char *folder = ".fractal";
    size_t folder_len = strlen(folder);
    if (*settings->data_dir) {
        folder = settings->data_dir;
        folder_len = strlen(folder);
    } else if (slash) {
        folder = settings->token_file;
        folder_len = (size_t)(slash - folder);
    }
    int len = snprintf(out, CLI_PATH_MAX, "%.*s/%s", (int)folder_len, folder, name);
    return (len >= 0 && len < CLI_PATH_MAX) ||
           fx_fail(err, FX_INVALID_ARGUMENT, "the data folder's path is too long");
}

bool cli_api_key(const struct cli_settings *settings, char out[CLI_SECRET_MAX], fx_error *err) {
    char path[CLI_PATH_MAX];
    if (*settings->api_key) {
        if (strlen(settings->api_key) >= CLI_SECRET_MAX)
            return fx_fail(err, FX_INVALID_ARGUMENT, "FX_API_KEY is too long");
        (void)snprintf(out, CLI_SECRET_MAX, "%s", settings->api_key);
        return true;
    }
    if (!data_path(settings, "api-key", path, err)) return false;
    if (read_secret(path, out, err)) return true;
    err->code = FX_FAILED_PRECONDITION;
    return fx_wrap(err, "no API key (run ./fractal up, or set FX_API_KEY)");
}

bool cli_bootstrap_token(const struct cli_settings *settings, char out[CLI_SECRET_MAX],
                         fx_error *err) {
    char path[CLI_PATH_MAX];
    const char *from = *settings->token_file ? settings->token_file : path;
    if (!data_path(settings, "bootstrap-token", path, err)) return false;
    if (read_secret(from, out, err)) return true;
    err->code = FX_FAILED_PRECONDITION;
    return fx_wrap(err, "no bootstrap token (run ./fractal up, or set FX_BOOTSTRAP_TOKEN_FILE)");
}
