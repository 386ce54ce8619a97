void f(void) {
    strcpy(x);
    strcat(x);
    sprintf(x);
    vsprintf(x);
    atoi(x);
    atol(x);
    strtok(x);
    gets(x);
    rand(x);
    system(x);
    malloc(x);
    calloc(x);
    realloc(x);
    getenv(x);
    exit(x);
    _exit(x);
}
