#include "services/slicer/app.h"

#define METHOD(name, handler, request, kind, deadline_ms)                                          \
    {                                                                                              \
        "/fractal.v1.SlicerService/" name, handler, &fractal__v1__##request##__descriptor, kind,   \
            deadline_ms, 8192                                                                      \
    }

/* An import and a verification take as long as the client waits. */
const struct fx_method slicer_methods[] = {
    METHOD("ImportModel", slicer_import, import_model_request, FX_RPC_SERVER_STREAM, 0),
    METHOD("ListModels", slicer_list, list_models_request, FX_RPC_UNARY, 30000),
    METHOD("GetManifest", slicer_manifest, get_manifest_request, FX_RPC_UNARY, 30000),
    METHOD("GetTokenizer", slicer_tokenizer, get_tokenizer_request, FX_RPC_UNARY, 30000),
    METHOD("VerifyModel", slicer_verify, verify_model_request, FX_RPC_UNARY, 0),
};
const size_t slicer_method_count = FX_COUNT(slicer_methods);
_Static_assert(FX_COUNT(slicer_methods) <= FX_METHODS_MAX, "raise FX_METHODS_MAX");
