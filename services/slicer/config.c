#include "services/slicer/config.h"

#define AT(member) offsetof(struct slicer_config, member)

const struct fx_env_row slicer_env[] = {
    FX_SERVICE_ROWS(struct slicer_config, service, "127.0.0.1:50053", "127.0.0.1:51053"),
    FX_DRAIN_ROW(struct slicer_config, health, "10000"),
    {"FX_MODEL_DIR",            FX_ENV_TEXT, AT(model_dir),  0, 0, NULL, NULL, "folder of the model store"},
    {"FX_BOOTSTRAP_TOKEN_FILE", FX_ENV_TEXT, AT(token_file), 0, 0, NULL, NULL,
                                             "file (mode 0600) with the 64 hex digits that ImportModel must show"                                 },
};
const size_t slicer_env_count = FX_COUNT(slicer_env);

bool slicer_config_load(struct slicer_config *config, fx_error *err) {
    struct slicer_config read = {0};
    if (!fx_env_load(slicer_env, slicer_env_count, &read, err)) return false;
    *config = read;
    return true;
}
