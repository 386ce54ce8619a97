#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "common/base/heap.h"
#include "common/model/safetensors_internal.h"
#include "common/model/store_file.h"

enum { HEADER_ENTRY_MAX = FX_TENSOR_NAME_MAX + 64 + FX_TENSOR_DIMS_MAX * 21 + 64 };

struct slot {
    uint64_t at, bytes, written; /* `at` from the beginning of the data */
};

struct fx_safetensors_writer {
    int fd;
    uint64_t data_at, bytes;
    struct slot *slots;
    size_t count;
};

static uint64_t align(uint64_t at) {
    return (at + FX_SAFETENSORS_ALIGN - 1) / FX_SAFETENSORS_ALIGN * FX_SAFETENSORS_ALIGN;
}

static uint64_t spec_bytes(const struct fx_tensor_spec *spec) {
    uint64_t bytes;
    FX_ASSERT(spec->dims <= FX_TENSOR_DIMS_MAX);
    FX_ASSERT(fx_safetensors__bytes(spec->dtype, spec->dims, spec->shape, &bytes));
    return bytes;
}

static void put_entry(fx_buf *out, const struct fx_tensor_spec *spec, uint64_t at, uint64_t bytes) {
    char text[HEADER_ENTRY_MAX];
    size_t len = (size_t)snprintf(text, sizeof text, "%s\"%.*s\":{\"dtype\":\"%s\",\"shape\":[",
                                  out->len > 1 ? "," : "", FX_TENSOR_NAME_MAX, spec->name,
                                  fx_dtype_name(spec->dtype));
    for (uint32_t i = 0; i < spec->dims; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%llu", i ? "," : "",
                                (unsigned long long)spec->shape[i]);
    len += (size_t)snprintf(text + len, sizeof text - len, "],\"data_offsets\":[%llu,%llu]}",
                            (unsigned long long)at, (unsigned long long)at + bytes);
    FX_ASSERT(len < sizeof text);
    fx_buf_put(out, (fx_span){(const uint8_t *)text, len});
}

/* The header's text, blank up to a multiple of 64 with the 8 bytes before it; the end of the data
 * is returned. A first pass into no buffer measures. */
static uint64_t put_header(fx_buf *out, const struct fx_tensor_spec *specs, size_t count) {
    uint64_t at = 0;
    fx_buf_put(out, fx_span_str("{"));
    for (size_t i = 0; i < count; i++) {
        uint64_t pad = align(at) - at;
        char name[32];
        (void)snprintf(name, sizeof name, "pad#%zu", i);
        struct fx_tensor_spec filler = {name, FX_DTYPE_U8, 1, {pad}};
        if (pad) put_entry(out, &filler, at, pad);
        at += pad;
        put_entry(out, &specs[i], at, spec_bytes(&specs[i]));
        at += spec_bytes(&specs[i]);
    }
    fx_buf_put(out, fx_span_str("}"));
    while ((out->len + 8) % FX_SAFETENSORS_ALIGN)
        fx_buf_put(out, fx_span_str(" "));
    return at;
}

uint64_t fx_safetensors_size(const struct fx_tensor_spec *specs, size_t count) {
    fx_buf none = {0};
    uint64_t data = put_header(&none, specs, count);
    return 8 + none.len + data;
}

static FX_MUST bool write_header(fx_safetensors_writer *writer, const struct fx_tensor_spec *specs,
                                 fx_error *err) {
    fx_buf none = {0};
    (void)put_header(&none, specs, writer->count);
    fx_auto(uint8_t) text = fx_alloc(none.len, 1);
    if (!text) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a header");
    fx_buf header = {text, 0, none.len};
    writer->data_at = 8 + none.len;
    writer->bytes = writer->data_at + put_header(&header, specs, writer->count);
    uint64_t len = header.len;
    if (ftruncate(writer->fd, (off_t)writer->bytes) != 0) return fx_fail_errno(err, "resize");
    return fx_file__pwrite(writer->fd, 0, (fx_span){(const uint8_t *)&len, 8}, err) &&
           fx_file__pwrite(writer->fd, 8, (fx_span){text, len}, err);
}

static void place_slots(fx_safetensors_writer *writer, const struct fx_tensor_spec *specs) {
    uint64_t at = 0;
    for (size_t i = 0; i < writer->count; i++) {
        writer->slots[i] = (struct slot){align(at), spec_bytes(&specs[i]), 0};
        at = writer->slots[i].at + writer->slots[i].bytes;
    }
}

bool fx_safetensors_create(const char *path, const struct fx_tensor_spec *specs, size_t count,
                           fx_safetensors_writer **out, fx_error *err) {
    fx_auto(fx_safetensors_writer) writer = fx_alloc(1, sizeof *writer);
    if (!writer) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a writer");
    writer->fd = -1;
    writer->count = count;
    writer->slots = fx_alloc(count, sizeof *writer->slots);
    if (!writer->slots) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a writer");
    place_slots(writer, specs);
    writer->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (writer->fd < 0) return fx_fail_errno(err, "create '%s'", path);
    if (!write_header(writer, specs, err)) return fx_wrap(err, "'%s'", path);
    *out = fx_take(writer);
    return true;
}

bool fx_safetensors_write(fx_safetensors_writer *writer, size_t index, uint64_t offset,
                          fx_span bytes, fx_error *err) {
    FX_ASSERT(index < writer->count);
    struct slot *slot = &writer->slots[index];
    FX_ASSERT(offset <= slot->bytes && bytes.len <= slot->bytes - offset);
    slot->written += bytes.len;
    return fx_file__pwrite(writer->fd, writer->data_at + slot->at + offset, bytes, err);
}

bool fx_safetensors_finish(fx_safetensors_writer *writer, fx_error *err) {
    for (size_t i = 0; i < writer->count; i++)
        if (writer->slots[i].written != writer->slots[i].bytes)
            return fx_fail(err, FX_FAILED_PRECONDITION, "tensor %zu has %llu of %llu bytes", i,
                           (unsigned long long)writer->slots[i].written,
                           (unsigned long long)writer->slots[i].bytes);
    return fsync(writer->fd) == 0 || fx_fail_errno(err, "sync");
}

void fx_safetensors_writer_free(fx_safetensors_writer *writer) {
    if (!writer) return;
    if (writer->fd >= 0) (void)close(writer->fd);
    free(writer->slots);
    free(writer);
}
