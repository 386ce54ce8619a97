#include "common/rpc/pb.h"
#include "services/slicer/message.h"

void slicer_model_fill(struct slicer_model *model, const struct fx_model_info *info) {
    Fractal__V1__Model *message = &model->message;
    fractal__v1__model__init(message);
    fx_numerics_id(info, "f32", model->numerics_id);
    message->name = fx_pb_text(info->name);
    message->number = info->number;
    message->version = fx_pb_text(info->version);
    message->dtype = fx_pb_text(fx_model_dtype_name(info->dtype));
    message->created_s = info->created_s;
    message->context_max = info->context_max;
    message->vocabulary = info->vocabulary;
    message->tokenizer_digest = fx_pb_text(info->tokenizer_digest);
    message->has_chat_template = info->has_chat_template;
    message->numerics_id = model->numerics_id;
    message->bytes = info->bytes;
    message->n_eos_ids = info->eos_count;
    message->eos_ids = (uint32_t *)(uintptr_t)info->eos_ids;
}
