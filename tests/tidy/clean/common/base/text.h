/* A header. */
#pragma once
#define URL "http://example.org" /* strcpy(a, b) in a comment */
const char *text(void);
