/* tidy ROOT: holds a source tree to the rules of docs/STYLE.md that a compiler can't. Prints each
 * finding as "path:line: rule: message"; 0 when there is none, 1 otherwise. */
#include "tools/tidy/tidy.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    struct fx_tree tree;
    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s ROOT\n", argv[0]);
        return EXIT_FAILURE;
    }
    bool ok = fx_tree_load(&tree, argv[1]);
    if (ok) {
        fx_rule_layers(&tree);
        fx_rule_calls(&tree);
        fx_rule_numerics(&tree);
        fx_rule_shape(&tree);
        fx_rule_listed(&tree);
        fx_rule_docs(&tree);
        fx_rule_named(&tree);
        (void)printf("tidy: %zu files, %zu findings\n", tree.count, tree.findings);
        ok = tree.findings == 0;
    }
    fx_tree_free(&tree);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
