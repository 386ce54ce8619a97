#include <jansson.h>
#include <string.h>
#include "common/base/heap.h"
#include "services/cli/answer.h"
#include "services/cli/chat_model.h"
#include "services/cli/cli.h"
#include "services/cli/interrupt.h"
#include "services/cli/terminal.h"

enum { TEXT_BYTES_MAX = 1024 * 1024, MAX_TOKENS_DEFAULT = 128 };

FX_DEFINE_AUTO(json_t, json_decref)

struct chat_args {
    const char *model;
    struct cli_u64 max_tokens, seed;
    struct cli_real temperature;
};

static const struct cli_option options[] = {
    {"model",       CLI_TEXT, offsetof(struct chat_args, model),       0, 0,                  "M", NULL,
     "which model; may be left out where there is one"},
    {"max-tokens",  CLI_U64,  offsetof(struct chat_args, max_tokens),  1, 1e6,                "N", NULL,
     "the longest answer (128)"                       },
    {"temperature", CLI_REAL, offsetof(struct chat_args, temperature), 0, 2,                  "T", NULL,
     "0 is greedy; else the gateway's default"        },
    {"seed",        CLI_U64,  offsetof(struct chat_args, seed),        0, 9007199254740992.0, "S", NULL,
     "the same seed gives the same answer"            },
};

static void on_text(void *user, fx_span text) {
    bool *open_line = user;
    cli_put_text(stdout, text);
    *open_line = text.at[text.len - 1] != '\n';
}

static FX_MUST bool make_body(const struct chat_args *args, const char *model, const char *text,
                              char **out, fx_error *err) {
    fx_auto(json_t) body = json_pack("{s:s, s:[{s:s, s:s}], s:b, s:I}", "model", model, "messages",
                                     "role", "user", "content", text, "stream", 1, "max_tokens",
                                     args->max_tokens.given ? (json_int_t)args->max_tokens.value
                                                            : (json_int_t)MAX_TOKENS_DEFAULT);
    if (!body) return fx_fail(err, FX_INVALID_ARGUMENT, "the text or model name is not UTF-8");
    if (args->temperature.given)
        (void)json_object_set_new(body, "temperature", json_real(args->temperature.value));
    if (args->seed.given)
        (void)json_object_set_new(body, "seed", json_integer((json_int_t)args->seed.value));
    *out = json_dumps(body, JSON_COMPACT);
    return *out || fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a request");
}

static FX_MUST bool chat(const struct cli_settings *settings, const struct chat_args *args,
                         const char *text, fx_error *err) {
    struct cli_gateways gateways;
    char key[CLI_SECRET_MAX], found[CLI_MODEL_NAME_MAX];
    fx_auto(char) body = NULL;
    bool open_line = false;
    const char *model = args->model ? args->model : found;
    if (!cli_gateways_read(settings, &gateways, err) || !cli_api_key(settings, key, err))
        return false;
    if (!args->model && !cli_only_model(gateways.url[0], key, found, err)) return false;
    if (!make_body(args, model, text, &body, err)) return false;
    bool ok =
        cli_answer_follow(&(struct cli_question){&gateways, key, body, on_text, &open_line}, err);
    if (open_line) cli_put_text(stdout, fx_span_str("\n"));
    return ok;
}

/* The words of the command line, or standard input for "-". */
static FX_MUST bool read_text(int argc, char **argv, char *out, fx_error *err) {
    fx_buf buf = {(uint8_t *)out, 0, TEXT_BYTES_MAX};
    bool from_stdin = argc == 1 && strcmp(argv[0], "-") == 0;
    if (from_stdin) buf.len = fread(out, 1, TEXT_BYTES_MAX + 1, stdin);
    if (from_stdin && ferror(stdin)) return fx_fail_errno(err, "standard input");
    for (int word = 0; word < argc && !from_stdin; word++) {
        if (word) fx_buf_put(&buf, fx_span_str(" "));
        fx_buf_put(&buf, fx_span_str(argv[word]));
    }
    if (!fx_buf_fits(&buf))
        return fx_fail(err, FX_INVALID_ARGUMENT, "the text is longer than %d bytes",
                       TEXT_BYTES_MAX);
    out[buf.len] = '\0';
    if (strlen(out) == buf.len) return true;
    return fx_fail(err, FX_INVALID_ARGUMENT, "the text has a NUL byte");
}

static int run(const struct cli_settings *settings, int argc, char **argv) {
    struct chat_args args = {0};
    fx_error err = {0};
    int words = cli_options(options, FX_COUNT(options), argc, argv, &args, &err);
    if (words == 0) fx_error_set(&err, FX_INVALID_ARGUMENT, "what is the text?");
    if (words <= 0) return cli_misused(&cli_chat, &err);
    fx_auto(char) text = fx_alloc(TEXT_BYTES_MAX + 2, 1);
    if (!text) fx_error_set(&err, FX_RESOURCE_EXHAUSTED, "memory for the text");
    if (!text || !read_text(words, argv, text, &err)) return cli_failed(&err);
    cli_interrupt_watch();
    if (chat(settings, &args, text, &err)) return CLI_OK;
    (void)cli_failed(&err);
    return err.code == FX_CANCELLED ? CLI_CANCELLED : CLI_FAILED;
}

const struct cli_command cli_chat = {
    .name = "chat",
    .usage = "[OPTIONS] TEXT",
    .summary = "One answer, streamed to the terminal; Ctrl-C cancels it",
    .options = options,
    .option_count = FX_COUNT(options),
    .run = run,
    .more = "TEXT may be several words; - reads it from standard input.",
};
