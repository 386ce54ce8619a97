/* manifest.json of the model store: what is read of it is in range, and no file of it lies outside
 * the version's folder. */
#include <string.h>
#include "tests/fuzz/fuzz.h"
#include "common/base/heap.h"
#include "common/model/manifest.h"

FX_DEFINE_AUTO(json_t, json_decref)

static void check_info(const struct fx_model_info *info) {
    char numerics[FX_NUMERICS_ID_MAX];
    FX_ASSERT(info->name[0] && info->version[0] && info->eos_count <= FX_EOS_MAX);
    for (uint32_t i = 0; i < info->eos_count; i++)
        FX_ASSERT(info->eos_ids[i] < info->vocabulary);
    fx_numerics_id(info, "f32", numerics);
    FX_ASSERT(strlen(numerics) < sizeof numerics);
}

static void check_files(const json_t *manifest) {
    struct fx_manifest_file file;
    fx_error err = {0};
    for (size_t i = 0; i < fx_manifest_file_count(manifest); i++)
        if (fx_manifest_file_at(manifest, i, &file, &err))
            FX_ASSERT(file.name[0] && file.name[0] != '.' && !strchr(file.name, '/'));
        else
            FX_ASSERT(err.code == FX_DATA_LOSS);
}

static void check_tensors(json_t *manifest) {
    struct fx_manifest_tensor tensor;
    fx_error err = {0};
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(manifest, "tensors"), name,
                        value) if (!fx_manifest_tensor(manifest, name, &tensor, &err))
        FX_ASSERT(err.code == FX_DATA_LOSS && err.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fx_auto(json_t) manifest = NULL;
    struct fx_model_info info;
    fx_error err = {0};
    if (!fx_manifest_parse((fx_span){data, size}, &manifest, &err)) {
        FX_ASSERT(err.code == FX_DATA_LOSS && err.text[0]);
        return 0;
    }
    if (fx_manifest_info(manifest, &info, &err)) check_info(&info);
    check_files(manifest);
    check_tensors(manifest);
    return 0;
}
