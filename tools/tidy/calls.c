/* Rules "call" (banned functions) and "xadd" (logs are written by the Redis functions alone). */
#include "tools/tidy/tidy.h"
#include "common/base/auto.h"
#include <string.h>
#include <strings.h>

/* A function that may not be called under `scope`, "" being everywhere. */
static const struct {
    const char *name, *scope, *instead;
} bans[] = {
    {"strcpy",         "",        "snprintf or fx_buf_put"            },
    {"strcat",         "",        "snprintf or fx_buf_put"            },
    {"strncpy",        "",        "snprintf or fx_buf_put"            },
    {"strncat",        "",        "snprintf or fx_buf_put"            },
    {"sprintf",        "",        "snprintf"                          },
    {"vsprintf",       "",        "vsnprintf"                         },
    {"gets",           "",        "fgets"                             },
    {"atoi",           "",        "strtol with its checks"            },
    {"atol",           "",        "strtol with its checks"            },
    {"atoll",          "",        "strtoll with its checks"           },
    {"atof",           "",        "strtod with its checks"            },
    {"strtok",         "",        "strcspn"                           },
    {"rand",           "",        "fx_random"                         },
    {"srand",          "",        "fx_random"                         },
    {"random",         "",        "fx_random"                         },
    {"system",         "",        "no shell"                          },
    {"popen",          "",        "no shell"                          },
    {"malloc",         "",        "fx_alloc"                          },
    {"calloc",         "",        "fx_alloc"                          },
    {"realloc",        "",        "fx_realloc"                        },
    {"reallocarray",   "",        "fx_realloc"                        },
    {"strdup",         "",        "fx_strdup"                         },
    {"strndup",        "",        "fx_alloc"                          },
    {"asprintf",       "",        "fx_arena_printf or snprintf"       },
    {"vasprintf",      "",        "fx_arena_printf or snprintf"       },
    {"aligned_alloc",  "",        "fx_alloc or mmap"                  },
    {"posix_memalign", "",        "fx_alloc or mmap"                  },
    {"getenv",         "",        "a row in the service's env table"  },
    {"secure_getenv",  "",        "a row in the service's env table"  },
    {"exit",           "",        "return an fx_error; main returns"  },
    {"_exit",          "",        "return an fx_error; main returns"  },
    {"quick_exit",     "",        "return an fx_error; main returns"  },
    {"printf",         "common",  "return an fx_error: services print"},
    {"fprintf",        "common",  "return an fx_error: services print"},
    {"printf",         "kernels", "return an fx_error: services print"},
    {"fprintf",        "kernels", "return an fx_error: services print"},
    {"printf",         "engine",  "return an fx_error: services print"},
    {"fprintf",        "engine",  "return an fx_error: services print"},
};

/* Where a banned call is right all the same; `path` is a file or a folder. */
static const struct {
    const char *name, *path, *reason;
} allowed[] = {
    {"malloc",        "tests",               "tests may count and fail allocations"},
    {"calloc",        "tests",               "tests may count and fail allocations"},
    {"realloc",       "tests",               "tests may count and fail allocations"},
    {"strdup",        "tests",               "tests may count and fail allocations"},
    {"strndup",       "tests",               "tests may count and fail allocations"},
    {"aligned_alloc", "tests",               "tests may count and fail allocations"},
    {"getenv",        "tests",               "tests read what ctest gives them"    },
    {"exit",          "tests",               "a child of a test ends there"        },
    {"_exit",         "tests",               "a child of a test ends there"        },
    {"calloc",        "common/base/heap.c",  "the one allocator"                   },
    {"realloc",       "common/base/heap.c",  "the one allocator"                   },
    {"strdup",        "common/base/heap.c",  "the one allocator"                   },
    {"getenv",        "common/base/env.c",   "the one reader of the environment"   },
    {"printf",        "common/base/env.c",   "--help"                              },
    {"fprintf",       "common/base/error.c", "a failed assertion names its place"  },
};

static bool is_allowed(const struct fx_source *file, const char *name) {
    const char *slash = strrchr(file->path, '/');
    const char *base = slash ? slash + 1 : file->path;
    bool exits = strcmp(name, "exit") == 0 || strcmp(name, "_exit") == 0;
    if (exits && strcmp(base, "main.c") == 0) return true;
    for (size_t i = 0; i < FX_COUNT(allowed); i++)
        if (strcmp(allowed[i].name, name) == 0 && fx_under(file->path, allowed[i].path))
            return true;
    return false;
}

/* A call of the C function: followed by '(', and not a member, x.exit(...) or x->exit(...). */
static bool is_call(const char *text, const char *at, size_t len) {
    const char *after = at + len + strspn(at + len, " \t\n");
    bool member = at > text && (at[-1] == '.' || (at[-1] == '>' && at - 1 > text && at[-2] == '-'));
    return *after == '(' && !member;
}

static void check_calls(struct fx_tree *tree, const struct fx_source *file, const char *name,
                        const char *instead) {
    if (is_allowed(file, name)) return;
    for (const char *at = fx_next_word(file->code, name); at; at = fx_next_word(at + 1, name))
        if (is_call(file->code, at, strlen(name)))
            fx_find(tree, file, fx_line_of(file->code, at), "call", "%s(): instead: %s", name,
                    instead);
}

/* Python and shell too may write a log only by the functions; what seeds a test says so here. */
static const char *const xadd_homes[] = {"common/queue/fractal.lua", "tests/integ/queue",
                                         "tests/e2e/monitor.c", /* reads MONITOR */
                                         "tests/unit/queue"};

static void check_xadd(struct fx_tree *tree, const struct fx_source *file) {
    for (size_t i = 0; i < FX_COUNT(xadd_homes); i++)
        if (fx_under(file->path, xadd_homes[i])) return;
    if (fx_ends_with(file->path, ".md") || fx_under(file->path, "tools/tidy")) return;
    const char *at = strcasestr(file->bare, "xadd");
    if (at)
        fx_find(tree, file, fx_line_of(file->bare, at), "xadd",
                "only common/queue/fractal.lua writes to a log");
}

void fx_rule_calls(struct fx_tree *tree) {
    for (size_t i = 0; i < tree->count; i++) {
        const struct fx_source *file = &tree->files[i];
        check_xadd(tree, file);
        if (!fx_is_c(file)) continue;
        for (size_t ban = 0; ban < FX_COUNT(bans); ban++)
            if (!*bans[ban].scope || fx_under(file->path, bans[ban].scope))
                check_calls(tree, file, bans[ban].name, bans[ban].instead);
    }
}
