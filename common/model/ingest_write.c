#include "common/model/ingest_write.h"
#include <fcntl.h>
#include "common/model/ingest_rows.h"
#include "common/model/ingest_specs.h"
#include "common/model/store_file.h"

/* What is open while the weights pass by: one part and the pack. */
struct output {
    const struct fx_plan *plan;
    const char *folder;
    const struct fx_ingest_tick *tick;
    fx_safetensors_writer *part;
    uint32_t part_number;
    int pack;
    struct fx_band band;
};

/* The pack is written to disk part by part too, so that its end is no long wait. */
static FX_MUST bool close_part(struct output *output, fx_error *err) {
    if (!output->part) return true;
    if (!fx_safetensors_finish(output->part, err)) return false;
    fx_safetensors_writer_free(fx_take(output->part));
    return fdatasync(output->pack) == 0 || fx_fail_errno(err, "sync '" FX_PACK_FILE "'");
}

static FX_MUST bool open_part(struct output *output, uint32_t part, fx_error *err) {
    char name[FX_MANIFEST_FILE_MAX], path[FX_PATH_MAX];
    struct fx_part_specs specs = {0};
    fx_manifest_part_name(part, name);
    bool ok = close_part(output, err) && fx_file__path(path, err, "%s/%s", output->folder, name) &&
              fx_part_specs__make(output->plan, part, &specs, err);
    if (ok) FX_ASSERT(fx_safetensors_size(specs.at, specs.count) <= output->plan->part_bytes_max);
    ok = ok && fx_safetensors_create(path, specs.at, specs.count, &output->part, err);
    output->part_number = part;
    fx_part_specs__done(&specs);
    return ok;
}

/* The band's rows from `row` on, `row` counted from the slice's first. */
static FX_MUST bool write_part(struct output *output, const struct fx_plan_slice *slice,
                               uint32_t row, uint32_t rows, fx_error *err) {
    const struct fx_plan_tensor *tensor = &output->plan->tensors[slice->tensor];
    const struct fx_band *band = &output->band;
    uint64_t cells = (uint64_t)rows * tensor->is.cols, before = (uint64_t)row * tensor->is.cols;
    uint64_t blocks = fx_plan__blocks(tensor->is.cols);
    if (fx_plan__is_int4(output->plan, tensor)) {
        fx_span codes = {band->codes, rows * blocks * (FX_BLOCK / 2)};
        fx_span scales = {(const uint8_t *)band->scales, rows * blocks * sizeof(float)};
        return fx_safetensors_write(output->part, slice->spec, row * blocks * (FX_BLOCK / 2), codes,
                                    err) &&
               fx_safetensors_write(output->part, slice->spec + 1, row * blocks * sizeof(float),
                                    scales, err);
    }
    bool half = fx_plan__dtype(output->plan, tensor) == FX_DTYPE_F16;
    size_t each = half ? sizeof(uint16_t) : sizeof(float);
    const void *values = half ? (const void *)band->halves : band->values;
    return fx_safetensors_write(output->part, slice->spec, before * each,
                                (fx_span){values, cells * each}, err);
}

static FX_MUST bool write_pack(struct output *output, const struct fx_plan_tensor *tensor,
                               uint32_t row, uint32_t rows, fx_error *err) {
    uint64_t before = row ? fx_weight_bytes(tensor->pack.layout, row, tensor->is.cols) : 0;
    fx_span bytes = fx_band__pack(tensor, rows, &output->band);
    return fx_file__pwrite(output->pack, tensor->pack.offset + before, bytes, err) ||
           fx_wrap(err, "'" FX_PACK_FILE "'");
}

static FX_MUST bool write_band(struct output *output, const struct fx_plan_slice *slice,
                               uint32_t row, uint32_t rows, fx_error *err) {
    const struct fx_plan_tensor *tensor = &output->plan->tensors[slice->tensor];
    const struct fx_tensor *from = tensor->source->tensor;
    uint64_t bytes = (uint64_t)rows * tensor->is.cols * fx_dtype_bytes(from->dtype);
    if (!fx_band__read(output->plan, tensor, slice->row + row, rows, &output->band, err) ||
        !write_part(output, slice, row, rows, err) ||
        !write_pack(output, tensor, slice->row + row, rows, err))
        return false;
    return output->tick->step(output->tick->ctx, bytes) || fx_fail(err, FX_CANCELLED, "stopped");
}

static FX_MUST bool write_slice(struct output *output, const struct fx_plan_slice *slice,
                                fx_error *err) {
    uint32_t each = fx_band__rows(&output->plan->tensors[slice->tensor]);
    if ((!output->part || output->part_number != slice->part) &&
        !open_part(output, slice->part, err))
        return false;
    for (uint32_t row = 0; row < slice->rows; row += each) {
        uint32_t rest = slice->rows - row;
        if (!write_band(output, slice, row, rest < each ? rest : each, err)) return false;
    }
    return true;
}

static FX_MUST bool write_all(struct output *output, fx_error *err) {
    char path[FX_PATH_MAX];
    const struct fx_plan *plan = output->plan;
    if (!fx_band__init(plan, &output->band, err) ||
        !fx_file__path(path, err, "%s/" FX_PACK_FILE, output->folder))
        return false;
    output->pack = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (output->pack < 0 || ftruncate(output->pack, (off_t)plan->pack_bytes) != 0)
        return fx_fail_errno(err, "create '" FX_PACK_FILE "'");
    for (uint32_t i = 0; i < plan->slice_count; i++)
        if (!write_slice(output, &plan->slices[i], err)) return false;
    if (!close_part(output, err)) return false;
    return fsync(output->pack) == 0 || fx_fail_errno(err, "sync '" FX_PACK_FILE "'");
}

bool fx_ingest__write(const struct fx_plan *plan, const char *folder,
                      const struct fx_ingest_tick *tick, fx_error *err) {
    struct output output = {.plan = plan, .folder = folder, .tick = tick, .pack = -1};
    bool ok = write_all(&output, err);
    fx_safetensors_writer_free(output.part);
    fx_fd__close(&output.pack);
    fx_band__done(&output.band);
    return ok;
}

bool fx_ingest__parts_bytes(const struct fx_plan *plan, uint64_t *bytes, fx_error *err) {
    *bytes = 0;
    for (uint32_t part = 0; part < plan->part_count; part++) {
        struct fx_part_specs specs = {0};
        bool ok = fx_part_specs__make(plan, part, &specs, err);
        if (ok) *bytes += fx_safetensors_size(specs.at, specs.count);
        fx_part_specs__done(&specs);
        if (!ok) return false;
    }
    return true;
}
