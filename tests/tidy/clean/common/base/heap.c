/* The one allocator; a link in a comment is fine: https://example.org/a//b */
void *fx_alloc(size_t size) {
    return calloc(1, size);
}
