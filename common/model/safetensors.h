#pragma once
#include "common/base/error.h"
#include "common/base/span.h"

/** Types of safetensors that we know; others are refused by name. */
enum fx_dtype {
    FX_DTYPE_F64 = 1,
    FX_DTYPE_F32,
    FX_DTYPE_F16,
    FX_DTYPE_BF16,
    FX_DTYPE_I64,
    FX_DTYPE_I32,
    FX_DTYPE_I16,
    FX_DTYPE_I8,
    FX_DTYPE_U8,
    FX_DTYPE_BOOL,
};
/** Bytes of one value. */
uint32_t fx_dtype_bytes(enum fx_dtype dtype);
/** "F32", ... as in the files. */
const char *fx_dtype_name(enum fx_dtype dtype);

enum {
    FX_TENSOR_DIMS_MAX = 8,
    FX_TENSOR_NAME_MAX = 256,                     /* characters */
    FX_SAFETENSORS_TENSORS_MAX = 1 << 18,         /* of one file */
    FX_SAFETENSORS_HEADER_MAX = 64 * 1024 * 1024, /* bytes */
    FX_SAFETENSORS_ALIGN = 64,                    /* of tensors we write, in the file */
};

struct fx_tensor {
    const char *name; /* borrowed from the file */
    enum fx_dtype dtype;
    uint32_t dims; /* 0: a scalar */
    uint64_t shape[FX_TENSOR_DIMS_MAX];
    fx_span data; /* in the mapping, little-endian, not necessarily aligned */
};

/** One file, mapped read-only. Its header is trusted in nothing: every tensor's dtype is known, its
 *  shape times its size is its length, and the tensors cover the data without hole or overlap.
 *  Immutable once open. @thread any, also at once */
typedef struct fx_safetensors fx_safetensors;

/** @own caller, fx_safetensors_free() @err NOT_FOUND, INVALID_ARGUMENT and DATA_LOSS naming the
 *  tensor ("tensor 'a.weight': data ends at 9999 but the file has 5000 bytes") */
FX_MUST bool fx_safetensors_open(const char *path, fx_safetensors **out, fx_error *err);
void fx_safetensors_free(fx_safetensors *file);
FX_DEFINE_AUTO(fx_safetensors, fx_safetensors_free)
size_t fx_safetensors_count(const fx_safetensors *file);
/** In the order of their data. @pre i < count */
const struct fx_tensor *fx_safetensors_at(const fx_safetensors *file, size_t i);
/** NULL: none of that name. */
const struct fx_tensor *fx_safetensors_find(const fx_safetensors *file, const char *name);
/** Copies `len` bytes from byte `offset` of the tensor by pread, so that a file cut short meanwhile
 *  is an error and not a SIGBUS. @pre offset + len <= tensor->data.len @err DATA_LOSS, UNKNOWN */
FX_MUST bool fx_safetensors_read(const fx_safetensors *file, const struct fx_tensor *tensor,
                                 uint64_t offset, void *out, size_t len, fx_error *err);

/** What is to be written. */
struct fx_tensor_spec {
    const char *name; /* printable ASCII without '"' and '\\' */
    enum fx_dtype dtype;
    uint32_t dims;
    uint64_t shape[FX_TENSOR_DIMS_MAX];
};

/** A new file whose tensors start at multiples of 64 bytes. The format knows no holes, so that what
 *  lies between two tensors is a U8 tensor "pad#<n>". @thread one owner */
typedef struct fx_safetensors_writer fx_safetensors_writer;

/** The size of the file for these specs, header included. */
uint64_t fx_safetensors_size(const struct fx_tensor_spec *specs, size_t count);
/** Creates `path` (which must not exist) and writes the header.
 *  @own caller, fx_safetensors_writer_free() @err ALREADY_EXISTS, RESOURCE_EXHAUSTED (disk full) */
FX_MUST bool fx_safetensors_create(const char *path, const struct fx_tensor_spec *specs,
                                   size_t count, fx_safetensors_writer **out, fx_error *err);
/** Writes bytes of tensor `index` from byte `offset` on, in any order, each byte once. */
FX_MUST bool fx_safetensors_write(fx_safetensors_writer *writer, size_t index, uint64_t offset,
                                  fx_span bytes, fx_error *err);
/** Makes the file durable. @err FAILED_PRECONDITION: a tensor is not complete */
FX_MUST bool fx_safetensors_finish(fx_safetensors_writer *writer, fx_error *err);
void fx_safetensors_writer_free(fx_safetensors_writer *writer);
FX_DEFINE_AUTO(fx_safetensors_writer, fx_safetensors_writer_free)
