#pragma once
/* cmocka and its prerequisites, in the one order that works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define FX_TEST_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define FX_TEST_ROWS_MAX 256

/* A main that runs one cmocka test per row of `rows`; each row's first member is its name
 * (const char *), and the test gets the row by *state. */
#define FX_TEST_MAIN(function, rows)                                                               \
    int main(void) {                                                                               \
        static struct CMUnitTest fx_tests[FX_TEST_ROWS_MAX];                                       \
        size_t fx_count = FX_TEST_COUNT(rows);                                                     \
        for (size_t i = 0; i < fx_count; i++)                                                      \
            fx_tests[i] = (struct CMUnitTest){*(const char *const *)&(rows)[i], function, NULL,    \
                                              NULL, (void *)(uintptr_t) & (rows)[i]};              \
        return _cmocka_run_group_tests(#function, fx_tests, fx_count, NULL, NULL);                 \
    }
