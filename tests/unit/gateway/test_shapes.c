/* The JSON of chunks and answers, byte for byte. */
#include "tests/fx_test.h"
#include "common/base/heap.h"
#include "common/http/json.h"
#include "services/gateway/shapes.h"

static const struct gw_answer plain = {"chatcmpl-1", 7, "m\"x", false, 3};
static const struct gw_answer with_usage = {"chatcmpl-1", 7, "m\"x", true, 3};

#define HEAD(object)                                                                               \
    "{\"id\":\"chatcmpl-1\",\"object\":\"" object "\",\"created\":7,\"model\":\"m\\\"x\","
#define CHUNK HEAD("chat.completion.chunk")
#define USAGE "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}"

enum what { FIRST, DELTA, FINISH, BARE_FINISH, USAGE_CHUNK, WHOLE, TWO, FIRST_OF_SECOND };

static const struct row {
    const char *name;
    const struct gw_shape *shape;
    const struct gw_answer *answer;
    enum what what;
    const char *want;
} rows[] = {
    {"chat first",                &gw_chat_shape,       &plain,      FIRST,
     CHUNK "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
           "\"logprobs\":null,\"finish_reason\":null}],\"fractal\":{\"n\":0}}"                    },
    {"chat delta",                &gw_chat_shape,       &plain,      DELTA,
     CHUNK "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\\nb\"},\"logprobs\":null,"
           "\"finish_reason\":null}],\"fractal\":{\"n\":2}}"                                      },
    {"chat delta, usage to come", &gw_chat_shape,       &with_usage, DELTA,
     CHUNK "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\\nb\"},\"logprobs\":null,"
           "\"finish_reason\":null}],\"usage\":null,\"fractal\":{\"n\":2}}"                       },
    {"chat finish",               &gw_chat_shape,       &plain,      FINISH,
     CHUNK "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\\nb\"},\"logprobs\":null,"
           "\"finish_reason\":\"stop\"}],"
           "\"fractal\":{\"n\":2}}"                                                               },
    {"chat usage",                &gw_chat_shape,       &with_usage, USAGE_CHUNK,
     CHUNK "\"choices\":[]," USAGE ",\"fractal\":{\"n\":2}}"                                      },
    {"chat whole",                &gw_chat_shape,       &plain,      WHOLE,
     HEAD("chat.completion") "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\","
                             "\"content\":\"a\\nb\",\"refusal\":null},\"logprobs\":null,\"finish_"
                             "reason\":\"stop\"}]," USAGE ",\"fractal\":{\"n\":2}}"               },
    {"chat first of the second",  &gw_chat_shape,       &plain,      FIRST_OF_SECOND,
     CHUNK "\"choices\":[{\"index\":1,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
           "\"logprobs\":null,\"finish_reason\":null}],\"fractal\":{\"n\":0}}"                    },
    {"completion, two",           &gw_completion_shape, &plain,      TWO,
     HEAD("text_completion") "\"choices\":[{\"index\":0,\"text\":\"a\\nb\",\"logprobs\":null,"
                             "\"finish_reason\":\"stop\"},{\"index\":1,\"text\":\"\",\"logprobs\":"
                             "null,"
                             "\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":3,"
                             "\"completion_tokens\":9,\"total_tokens\":12},\"fractal\":{\"n\":9}}"},
    {"completion delta",          &gw_completion_shape, &plain,      DELTA,
     HEAD("text_completion") "\"choices\":[{\"index\":0,\"text\":\"a\\nb\",\"logprobs\":null,"
                             "\"finish_reason\":null}],\"fractal\":{\"n\":2}}"                    },
    {"chat finish, no text",      &gw_chat_shape,       &plain,      BARE_FINISH,
     CHUNK
     "\"choices\":[{\"index\":1,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"length\"}],"
     "\"fractal\":{\"n\":7}}"                                                                     },
    {"completion finish",         &gw_completion_shape, &with_usage, FINISH,
     HEAD("text_completion") "\"choices\":[{\"index\":0,\"text\":\"a\\nb\",\"logprobs\":null,"
                             "\"finish_reason\":\"stop\"}],\"usage\":null,\"fractal\":{\"n\":2}}" },
    {"completion whole",          &gw_completion_shape, &plain,      WHOLE,
     HEAD("text_completion") "\"choices\":[{\"index\":0,\"text\":\"a\\nb\",\"logprobs\":null,"
                             "\"finish_reason\":\"stop\"}]," USAGE ",\"fractal\":{\"n\":2}}"      },
};

static void write(const struct row *row, fx_buf *out) {
    const struct gw_piece pieces[] = {
        {0, 2, fx_span_str("a\nb"), "stop",   NULL},
        {1, 7, {NULL, 0},           "length", NULL}
    };
    switch (row->what) {
    case FIRST: row->shape->first(row->answer, 0, out); break;
    case FIRST_OF_SECOND: row->shape->first(row->answer, 1, out); break;
    case DELTA: row->shape->delta(row->answer, pieces, out); break;
    case FINISH: row->shape->finish(row->answer, pieces, out); break;
    case BARE_FINISH: row->shape->finish(row->answer, &pieces[1], out); break;
    case USAGE_CHUNK: gw_shape_usage(row->shape, row->answer, 2, out); break;
    case WHOLE: row->shape->whole(row->answer, pieces, 1, out); break;
    case TWO: row->shape->whole(row->answer, pieces, 2, out); break;
    }
}

static void test_shape(void **state) {
    const struct row *row = *state;
    uint8_t bytes[1024] = {0};
    fx_buf out = {bytes, 0, sizeof bytes - 1}, measured = {0};
    fx_auto(json_t) json = NULL;
    write(row, &out);
    write(row, &measured);
    assert_string_equal((char *)bytes, row->want);
    assert_int_equal(measured.len, out.len);
    assert_true(fx_json_parse((fx_span){bytes, out.len}, &json, &(fx_error){0}));
}

FX_TEST_MAIN(test_shape, rows)
