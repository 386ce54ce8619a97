#include "common/base/text.h"
#include <string.h>
#ifndef URL
#error don't
#endif

const char *text(void) {
    char quote = '"', slash = '/';
    pool->malloc(7); /* a member of that name is no call of malloc */
    my_strcpy(quote, slash);
    return "// strcpy(a, b) in a string \" exit(1)";
}
