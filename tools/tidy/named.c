/* Rule "test": a page names a test that is not there. `tests/x/test_y.c:name` is a file that has
 * the name of a test, or of a row of its table, in it; so is `tests/x/y.sh:name` with a function's.
 * `tests/x/y.sh` is a test as a whole. */
#include "tools/tidy/tidy.h"
#include <stdio.h>
#include <string.h>

static const struct fx_source *find(const struct fx_tree *tree, const char *path) {
    for (size_t i = 0; i < tree->count; i++)
        if (strcmp(tree->files[i].path, path) == 0) return &tree->files[i];
    return NULL;
}

/* `words`: what stands between the two quotes of a page. */
static void check(struct fx_tree *tree, const struct fx_source *page, const char *at, char *words) {
    char *name = strchr(words, ':');
    if (name) *name++ = '\0';
    if (!name && !fx_ends_with(words, ".sh")) return;
    const struct fx_source *test = find(tree, words);
    if (!test)
        fx_find(tree, page, fx_line_of(page->text, at), "test", "there is no %s", words);
    else if (name && !fx_next_word(test->text, name))
        fx_find(tree, page, fx_line_of(page->text, at), "test", "%s has no '%s'", words, name);
}

static void check_page(struct fx_tree *tree, const struct fx_source *page) {
    char words[FX_TIDY_PATH_BYTES];
    for (const char *at = page->text; (at = strstr(at, "`tests/"));) {
        size_t len = strcspn(++at, "`\n");
        if (at[len] == '`' && len < sizeof words) {
            (void)snprintf(words, sizeof words, "%.*s", (int)len, at);
            check(tree, page, at, words);
        }
        at += len;
    }
}

void fx_rule_named(struct fx_tree *tree) {
    for (size_t i = 0; i < tree->count; i++)
        if (fx_ends_with(tree->files[i].path, ".md")) check_page(tree, &tree->files[i]);
}
