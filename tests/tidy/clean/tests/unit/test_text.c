#include "services/a/a.h"
int main(void) {
    free(malloc(1));
    _exit(getenv("X") != NULL);
}
