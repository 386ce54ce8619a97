/* Rule "layer": includes go downwards only. */
#include "tools/tidy/tidy.h"
#include "common/base/auto.h"
#include <stdio.h>
#include <string.h>

/* A folder and what it may include beside itself; the first row that matches a file counts. */
static const struct {
    const char *folder;
    const char *may[12];
} layers[] = {
    {"common/base",  {NULL}                                                           },
    {"common/quant", {"common/base", NULL}                                            },
    {"common/model", {"common/base", "common/quant", NULL}                            },
    {"common/rpc",   {"common/base", "fractal/v1", "grpc", NULL}                      },
    {"common/queue", {"common/base", "fractal/v1", NULL}                              },
    {"common/http",  {"common/base", NULL}                                            },
    {"kernels",      {"common/base", "common/quant", "common/model", NULL}            },
    {"engine",       {"common/base", "common/quant", "common/model", "kernels", NULL} },
    {"services",     {"common", "engine", "kernels", "fractal/v1", "google/rpc", NULL}},
    {"tools",        {"common/base", NULL}                                            },
};

/* System headers that one folder alone may see: `#include <prefix...>`. */
static const struct {
    const char *prefix, *home;
} walled[] = {
    {"grpc/",    "common/rpc"  },
    {"hiredis/", "common/queue"},
};

/* Libraries return errors and stay silent; services log. */
static const char *const silent[] = {"common", "kernels", "engine"};

static bool may_log(const char *path) {
    if (fx_under(path, "common/base")) return true;
    if (strcmp(path, "common/rpc/service.c") == 0)
        return true; /* sets a service's name and level */
    for (size_t i = 0; i < FX_COUNT(silent); i++)
        if (fx_under(path, silent[i])) return false;
    return true;
}

/* services/gateway/x.c -> "services/gateway": a service is a layer of its own. */
static void own_folder(const char *path, const char *layer, char *out, size_t size) {
    size_t len = strlen(layer);
    if (strcmp(layer, "services") == 0) len += 1 + strcspn(path + len + 1, "/");
    (void)snprintf(out, size, "%.*s", (int)len, path);
}

static void check_project(struct fx_tree *tree, const struct fx_source *file, size_t line,
                          const char *name) {
    if (strncmp(name, "../", 3) == 0 || strstr(name, "/../")) {
        fx_find(tree, file, line, "layer", "'%s': includes are written from the root", name);
        return;
    }
    if (strcmp(name, "common/base/log.h") == 0 && !may_log(file->path))
        fx_find(tree, file, line, "layer", "'%s': libraries return an fx_error, services log",
                name);
    if (!strchr(name, '/')) return; /* generated beside the file */
    for (size_t i = 0; i < FX_COUNT(layers); i++) {
        if (!fx_under(file->path, layers[i].folder)) continue;
        char own[FX_TIDY_PATH_BYTES];
        own_folder(file->path, layers[i].folder, own, sizeof own);
        if (fx_under(name, own)) return;
        for (const char *const *may = layers[i].may; *may; may++)
            if (fx_under(name, *may)) return;
        fx_find(tree, file, line, "layer", "%s may not include '%s'", own, name);
        return;
    }
}

static void check_system(struct fx_tree *tree, const struct fx_source *file, size_t line,
                         const char *name) {
    for (size_t i = 0; i < FX_COUNT(walled); i++)
        if (strncmp(name, walled[i].prefix, strlen(walled[i].prefix)) == 0 &&
            !fx_under(file->path, walled[i].home) && !fx_under(file->path, "tests"))
            fx_find(tree, file, line, "layer", "<%s> belongs to %s alone", name, walled[i].home);
}

static bool is_directive(const char *text, const char *word) {
    while (word > text && (word[-1] == ' ' || word[-1] == '\t'))
        word--;
    return word > text && word[-1] == '#';
}

static void check_file(struct fx_tree *tree, const struct fx_source *file) {
    static const char word[] = "include";
    for (const char *at = fx_next_word(file->bare, word); at; at = fx_next_word(at + 1, word)) {
        if (!is_directive(file->bare, at)) continue;
        const char *open = at + strlen(word);
        open += strspn(open, " \t");
        char close = *open == '<' ? '>' : '"';
        if (*open != '<' && *open != '"') continue;
        char name[FX_TIDY_PATH_BYTES];
        const char ends[] = {close, '\n', '\0'};
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(open + 1, ends), open + 1);
        if (close == '>')
            check_system(tree, file, fx_line_of(file->bare, at), name);
        else
            check_project(tree, file, fx_line_of(file->bare, at), name);
    }
}

void fx_rule_layers(struct fx_tree *tree) {
    for (size_t i = 0; i < tree->count; i++)
        if (fx_is_c(&tree->files[i])) check_file(tree, &tree->files[i]);
}
