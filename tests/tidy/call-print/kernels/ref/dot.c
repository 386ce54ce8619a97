void f(void) {
    fprintf(stderr, "x");
}
