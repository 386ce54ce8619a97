/* Bodies of the routes that take one: what is taken, what is refused and under which name. */
#include "tests/fx_test.h"
#include <float.h>
#include "services/gateway/messages.h"
#include "services/gateway/request.h"

#define USER "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define CHAT(more) "{\"model\":\"m\"," USER more "}"
#define TEXT(more) "{\"model\":\"m\",\"prompt\":\"hi\"" more "}"

static const struct row {
    const char *name;
    enum gw_kind kind;
    const char *body;
    int reason;        /* -1: taken */
    const char *param; /* NULL: none */
} rows[] = {
    {"chat",                              GW_CHAT,       CHAT(""),                                                                 -1,             NULL                    },
    {"completion",                        GW_COMPLETION, TEXT(""),                                                                 -1,             NULL                    },
    {"not JSON",                          GW_CHAT,       "{\"model\":",                                                            GW_BAD_JSON,    NULL                    },
    {"an array",                          GW_CHAT,       "[]",                                                                     GW_BAD_JSON,    NULL                    },
    {"a number",                          GW_CHAT,       "1",                                                                      GW_BAD_JSON,    NULL                    },
    {"empty",                             GW_CHAT,       "",                                                                       GW_BAD_JSON,    NULL                    },
    {"invalid UTF-8",                     GW_CHAT,       "{\"model\":\"\xff\"}",                                                   GW_BAD_JSON,    NULL                    },
    {"field twice",                       GW_CHAT,       "{\"model\":\"a\",\"model\":\"b\"}",                                      GW_BAD_JSON,    NULL                    },
    {"no model",                          GW_CHAT,       "{" USER "}",                                                             GW_MISSING,     "model"                 },
    {"model null",                        GW_CHAT,       "{\"model\":null," USER "}",                                              GW_MISSING,     "model"                 },
    {"model number",                      GW_CHAT,       "{\"model\":1," USER "}",                                                 GW_BAD_VALUE,   "model"                 },
    {"model empty",                       GW_CHAT,       "{\"model\":\"\"," USER "}",                                              GW_BAD_VALUE,   "model"                 },
    {"no messages",                       GW_CHAT,       "{\"model\":\"m\"}",                                                      GW_MISSING,     "messages"              },
    {"no prompt",                         GW_COMPLETION, "{\"model\":\"m\"}",                                                      GW_MISSING,     "prompt"                },
    {"messages in completion",            GW_COMPLETION, TEXT("," USER),                                                           GW_UNKNOWN,     "messages"              },
    {"prompt in chat",                    GW_CHAT,       CHAT(",\"prompt\":\"x\""),                                                GW_UNKNOWN,     "prompt"                },
    {"unknown field",                     GW_CHAT,       CHAT(",\"temprature\":1"),                                                GW_UNKNOWN,     "temprature"            },
    {"unknown null field",                GW_CHAT,       CHAT(",\"frob\":null"),                                                   GW_UNKNOWN,     "frob"                  },

    {"temperature 0",                     GW_CHAT,       CHAT(",\"temperature\":0"),                                               -1,             NULL                    },
    {"temperature 2.0",                   GW_CHAT,       CHAT(",\"temperature\":2.0"),                                             -1,             NULL                    },
    {"temperature null",                  GW_CHAT,       CHAT(",\"temperature\":null"),                                            -1,             NULL                    },
    {"temperature 2.1",                   GW_CHAT,       CHAT(",\"temperature\":2.1"),                                             GW_BAD_VALUE,   "temperature"           },
    {"temperature -1",                    GW_CHAT,       CHAT(",\"temperature\":-1"),                                              GW_BAD_VALUE,   "temperature"           },
    {"temperature text",                  GW_CHAT,       CHAT(",\"temperature\":\"1\""),                                           GW_BAD_VALUE,   "temperature"           },
    {"temperature 1e308",                 GW_CHAT,       CHAT(",\"temperature\":1e308"),                                           GW_BAD_VALUE,   "temperature"           },
    {"top_p 1.01",                        GW_CHAT,       CHAT(",\"top_p\":1.01"),                                                  GW_BAD_VALUE,   "top_p"                 },
    {"min_p 0.5",                         GW_CHAT,       CHAT(",\"min_p\":0.5"),                                                   -1,             NULL                    },
    {"min_p 2",                           GW_CHAT,       CHAT(",\"min_p\":2"),                                                     GW_BAD_VALUE,   "min_p"                 },
    {"top_k -1 is off",                   GW_CHAT,       CHAT(",\"top_k\":-1"),                                                    -1,             NULL                    },
    {"top_k -2",                          GW_CHAT,       CHAT(",\"top_k\":-2"),                                                    GW_BAD_VALUE,   "top_k"                 },
    {"top_k 1.5",                         GW_CHAT,       CHAT(",\"top_k\":1.5"),                                                   GW_BAD_VALUE,   "top_k"                 },
    {"seed",                              GW_CHAT,       CHAT(",\"seed\":-9223372036854775808"),                                   -1,             NULL                    },
    {"seed over 64 bits",                 GW_CHAT,       CHAT(",\"seed\":99999999999999999999"),                                   GW_BAD_JSON,    NULL                    },
    {"seed fraction",                     GW_CHAT,       CHAT(",\"seed\":1.5"),                                                    GW_BAD_VALUE,   "seed"                  },
    {"max_tokens 0",                      GW_CHAT,       CHAT(",\"max_tokens\":0"),                                                GW_BAD_VALUE,   "max_tokens"            },
    {"max_tokens -1",                     GW_CHAT,       CHAT(",\"max_tokens\":-1"),                                               GW_BAD_VALUE,   "max_tokens"            },
    {"max_tokens 16.0",                   GW_CHAT,       CHAT(",\"max_tokens\":16.0"),                                             -1,             NULL                    },
    {"max_tokens huge",                   GW_CHAT,       CHAT(",\"max_tokens\":9007199254740993"),                                 GW_BAD_VALUE,
     "max_tokens"                                                                                                                                                          },
    {"max_completion_tokens",             GW_CHAT,       CHAT(",\"max_completion_tokens\":5"),                                     -1,             NULL                    },
    {"max_completion_tokens, completion", GW_COMPLETION, TEXT(",\"max_completion_tokens\":5"),
     GW_UNKNOWN,                                                                                                                                   "max_completion_tokens" },
    {"stream 1",                          GW_CHAT,       CHAT(",\"stream\":1"),                                                    GW_BAD_VALUE,   "stream"                },
    {"stream_options",                    GW_CHAT,       CHAT(",\"stream_options\":{\"include_usage\":true}"),                     -1,             NULL                    },
    {"stream_options list",               GW_CHAT,       CHAT(",\"stream_options\":[]"),                                           GW_BAD_VALUE,
     "stream_options"                                                                                                                                                      },
    {"stream_options other",              GW_CHAT,       CHAT(",\"stream_options\":{\"x\":true}"),                                 GW_UNKNOWN,
     "stream_options"                                                                                                                                                      },

    {"user",                              GW_CHAT,       CHAT(",\"user\":\"u\",\"metadata\":{\"a\":\"b\"},\"store\":false"),       -1,             NULL                    },
    {"n 1",                               GW_CHAT,       CHAT(",\"n\":1"),                                                         -1,             NULL                    },
    {"stop null",                         GW_CHAT,       CHAT(",\"stop\":null"),                                                   -1,             NULL                    },
    {"stop []",                           GW_CHAT,       CHAT(",\"stop\":[]"),                                                     -1,             NULL                    },
    {"stop text",                         GW_CHAT,       CHAT(",\"stop\":\"x\""),                                                  -1,             NULL                    },
    {"four stops",                        GW_CHAT,       CHAT(",\"stop\":[\"a\",\"b\",\"c\",\"d\"]"),                              -1,             NULL                    },
    {"five stops",                        GW_CHAT,       CHAT(",\"stop\":[\"a\",\"b\",\"c\",\"d\",\"e\"]"),                        GW_BAD_VALUE,
     "stop"                                                                                                                                                                },
    {"stop empty text",                   GW_CHAT,       CHAT(",\"stop\":\"\""),                                                   GW_BAD_VALUE,   "stop"                  },
    {"stop [\"\"]",                       GW_CHAT,       CHAT(",\"stop\":[\"\"]"),                                                 GW_BAD_VALUE,   "stop"                  },
    {"stop ok, empty",                    GW_CHAT,       CHAT(",\"stop\":[\"ok\",\"\"]"),                                          GW_BAD_VALUE,   "stop"                  },
    {"stop number",                       GW_CHAT,       CHAT(",\"stop\":5"),                                                      GW_BAD_VALUE,   "stop"                  },
    {"stop numbers",                      GW_CHAT,       CHAT(",\"stop\":[5]"),                                                    GW_BAD_VALUE,   "stop"                  },
    {"stop {}",                           GW_CHAT,       CHAT(",\"stop\":{}"),                                                     GW_BAD_VALUE,   "stop"                  },
    {"stop in completion",                GW_COMPLETION, TEXT(",\"stop\":[\"\"]"),                                                 GW_BAD_VALUE,   "stop"                  },
    {"logit_bias",                        GW_CHAT,       CHAT(",\"logit_bias\":{\"0\":-100,\"4294967295\":100.0}"),                -1,             NULL                    },
    {"logit_bias -1",                     GW_CHAT,       CHAT(",\"logit_bias\":{\"-1\":5}"),                                       GW_BAD_VALUE,   "logit_bias"            },
    {"logit_bias abc",                    GW_CHAT,       CHAT(",\"logit_bias\":{\"abc\":5}"),                                      GW_BAD_VALUE,   "logit_bias"            },
    {"logit_bias 1e308",                  GW_CHAT,       CHAT(",\"logit_bias\":{\"1\":1e308}"),                                    GW_BAD_VALUE,
     "logit_bias"                                                                                                                                                          },
    {"logit_bias 100.1",                  GW_CHAT,       CHAT(",\"logit_bias\":{\"1\":100.1}"),                                    GW_BAD_VALUE,
     "logit_bias"                                                                                                                                                          },
    {"logit_bias text",                   GW_CHAT,       CHAT(",\"logit_bias\":{\"1\":\"5\"}"),                                    GW_BAD_VALUE,   "logit_bias"            },
    {"logit_bias 01",                     GW_CHAT,       CHAT(",\"logit_bias\":{\"01\":5}"),                                       GW_BAD_VALUE,   "logit_bias"            },
    {"logit_bias empty key",              GW_CHAT,       CHAT(",\"logit_bias\":{\"\":5}"),                                         GW_BAD_VALUE,   "logit_bias"            },
    {"logit_bias 2^32",                   GW_CHAT,       CHAT(",\"logit_bias\":{\"4294967296\":5}"),                               GW_BAD_VALUE,
     "logit_bias"                                                                                                                                                          },
    {"logit_bias []",                     GW_CHAT,       CHAT(",\"logit_bias\":[]"),                                               GW_BAD_VALUE,   "logit_bias"            },
    {"presence_penalty -2",               GW_CHAT,       CHAT(",\"presence_penalty\":-2"),                                         -1,             NULL                    },
    {"presence_penalty 2.1",              GW_CHAT,       CHAT(",\"presence_penalty\":2.1"),                                        GW_BAD_VALUE,
     "presence_penalty"                                                                                                                                                    },
    {"frequency_penalty 2",               GW_CHAT,       CHAT(",\"frequency_penalty\":2"),                                         -1,             NULL                    },
    {"frequency_penalty -3",              GW_CHAT,       CHAT(",\"frequency_penalty\":-3"),                                        GW_BAD_VALUE,
     "frequency_penalty"                                                                                                                                                   },
    {"repetition_penalty 1.5",            GW_CHAT,       CHAT(",\"repetition_penalty\":1.5"),                                      -1,             NULL                    },
    {"repetition_penalty 0",              GW_CHAT,       CHAT(",\"repetition_penalty\":0"),                                        GW_BAD_VALUE,
     "repetition_penalty"                                                                                                                                                  },
    {"typical_p 0.5",                     GW_CHAT,       CHAT(",\"typical_p\":0.5"),                                               -1,             NULL                    },
    {"typical_p 2",                       GW_CHAT,       CHAT(",\"typical_p\":2"),                                                 GW_BAD_VALUE,   "typical_p"             },
    {"ignore_eos",                        GW_CHAT,       CHAT(",\"ignore_eos\":true,\"min_tokens\":3,\"max_tokens\":3"),           -1,
     NULL                                                                                                                                                                  },
    {"ignore_eos 1",                      GW_CHAT,       CHAT(",\"ignore_eos\":1"),                                                GW_BAD_VALUE,   "ignore_eos"            },
    {"min_tokens -1",                     GW_CHAT,       CHAT(",\"min_tokens\":-1"),                                               GW_BAD_VALUE,   "min_tokens"            },
    {"min_tokens above max_tokens",       GW_CHAT,       CHAT(",\"min_tokens\":4,\"max_tokens\":3"),
     GW_BAD_VALUE,                                                                                                                                 "min_tokens"            },
    {"n 16",                              GW_CHAT,       CHAT(",\"n\":16"),                                                        -1,             NULL                    },
    {"n 0",                               GW_CHAT,       CHAT(",\"n\":0"),                                                         GW_BAD_VALUE,   "n"                     },
    {"n 17",                              GW_COMPLETION, TEXT(",\"n\":17"),                                                        GW_BAD_VALUE,   "n"                     },
    {"n 1.5",                             GW_CHAT,       CHAT(",\"n\":1.5"),                                                       GW_BAD_VALUE,   "n"                     },
    {"logprobs true",                     GW_CHAT,       CHAT(",\"logprobs\":true"),                                               -1,             NULL                    },
    {"logprobs 1 in chat",                GW_CHAT,       CHAT(",\"logprobs\":1"),                                                  GW_BAD_VALUE,   "logprobs"              },
    {"top_logprobs 20",                   GW_CHAT,       CHAT(",\"logprobs\":true,\"top_logprobs\":20"),                           -1,             NULL                    },
    {"top_logprobs 21",                   GW_CHAT,       CHAT(",\"logprobs\":true,\"top_logprobs\":21"),                           GW_BAD_VALUE,
     "top_logprobs"                                                                                                                                                        },
    {"top_logprobs -1",                   GW_CHAT,       CHAT(",\"logprobs\":true,\"top_logprobs\":-1"),                           GW_BAD_VALUE,
     "top_logprobs"                                                                                                                                                        },
    {"top_logprobs alone",                GW_CHAT,       CHAT(",\"top_logprobs\":2"),                                              GW_BAD_VALUE,   "top_logprobs"          },
    {"top_logprobs 0 alone",              GW_CHAT,       CHAT(",\"top_logprobs\":0"),                                              -1,             NULL                    },
    {"logprobs 0, completion",            GW_COMPLETION, TEXT(",\"logprobs\":0"),                                                  -1,             NULL                    },
    {"logprobs 5, completion",            GW_COMPLETION, TEXT(",\"logprobs\":5"),                                                  -1,             NULL                    },
    {"logprobs 6, completion",            GW_COMPLETION, TEXT(",\"logprobs\":6"),                                                  GW_BAD_VALUE,   "logprobs"              },
    {"logprobs true, completion",         GW_COMPLETION, TEXT(",\"logprobs\":true"),                                               GW_BAD_VALUE,
     "logprobs"                                                                                                                                                            },
    {"logprobs false, completion",        GW_COMPLETION, TEXT(",\"logprobs\":false"),                                              -1,             NULL                    },
    {"logprobs false",                    GW_CHAT,       CHAT(",\"logprobs\":false"),                                              -1,             NULL                    },
    {"logit_bias {}",                     GW_CHAT,       CHAT(",\"logit_bias\":{}"),                                               -1,             NULL                    },
    {"tools []",                          GW_CHAT,       CHAT(",\"tools\":[]"),                                                    -1,             NULL                    },
    {"tools",                             GW_CHAT,       CHAT(",\"tools\":[{}]"),                                                  GW_UNSUPPORTED, "tools"                 },
    {"tool_choice none",                  GW_CHAT,       CHAT(",\"tool_choice\":\"none\""),                                        -1,             NULL                    },
    {"tool_choice required",              GW_CHAT,       CHAT(",\"tool_choice\":\"required\""),                                    GW_UNSUPPORTED,
     "tool_choice"                                                                                                                                                         },
    {"response_format text",              GW_CHAT,       CHAT(",\"response_format\":{\"type\":\"text\"}"),                         -1,             NULL                    },
    {"response_format json",              GW_CHAT,       CHAT(",\"response_format\":{\"type\":\"json_object\"}"),
     GW_UNSUPPORTED,                                                                                                                               "response_format"       },
    {"modalities text",                   GW_CHAT,       CHAT(",\"modalities\":[\"text\"]"),                                       -1,             NULL                    },
    {"modalities audio",                  GW_CHAT,       CHAT(",\"modalities\":[\"text\",\"audio\"]"),                             GW_UNSUPPORTED,
     "modalities"                                                                                                                                                          },
    {"presence_penalty 0",                GW_CHAT,       CHAT(",\"presence_penalty\":0.0"),                                        -1,             NULL                    },
    {"echo true",                         GW_COMPLETION, TEXT(",\"echo\":true"),                                                   GW_UNSUPPORTED, "echo"                  },
    {"suffix",                            GW_COMPLETION, TEXT(",\"suffix\":\"\",\"best_of\":1"),                                   -1,             NULL                    },

    {"name of a message",                 GW_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\",\"name\":\"b\"}]}",                                      -1,
     NULL                                                                                                                                                                  },
    {"name that is a number",             GW_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\",\"name\":1}]}",                                          GW_BAD_VALUE,   "messages[0].name"      },
    {"vLLM's own defaults",               GW_CHAT,
     CHAT(",\"skip_special_tokens\":true,\"spaces_between_special_tokens\":true,\"include_stop_str_"
          "in_output\":false,\"use_beam_search\":false,\"priority\":0,\"truncate_prompt_tokens\":"
          "null"),
     -1,                                                                                                                                           NULL                    },
    {"special tokens shown",              GW_COMPLETION, TEXT(",\"skip_special_tokens\":false"),                                   GW_UNSUPPORTED,
     "skip_special_tokens"                                                                                                                                                 },
    {"beams",                             GW_COMPLETION, TEXT(",\"use_beam_search\":true"),                                        GW_UNSUPPORTED, "use_beam_search"       },
    {"the stop string shown",             GW_CHAT,       CHAT(",\"include_stop_str_in_output\":true"),                             GW_UNSUPPORTED,
     "include_stop_str_in_output"                                                                                                                                          },
    {"a prompt cut",                      GW_CHAT,       CHAT(",\"truncate_prompt_tokens\":5"),                                    GW_UNSUPPORTED,
     "truncate_prompt_tokens"                                                                                                                                              },
    {"best_of as n",                      GW_COMPLETION, TEXT(",\"n\":3,\"best_of\":3"),                                           -1,             NULL                    },
    {"best_of below n",                   GW_COMPLETION, TEXT(",\"n\":2,\"best_of\":1"),                                           GW_BAD_VALUE,   "best_of"               },
    {"best_of above n",                   GW_COMPLETION, TEXT(",\"best_of\":2"),                                                   GW_UNSUPPORTED, "best_of"               },
    {"best_of 0",                         GW_COMPLETION, TEXT(",\"best_of\":0"),                                                   GW_BAD_VALUE,   "best_of"               },
    {"best_of text",                      GW_COMPLETION, TEXT(",\"best_of\":\"1\""),                                               GW_BAD_VALUE,   "best_of"               },
    {"best_of in chat",                   GW_CHAT,       CHAT(",\"best_of\":1"),                                                   GW_UNKNOWN,     "best_of"               },

    {"kwargs",                            GW_CHAT,       CHAT(",\"chat_template_kwargs\":{\"enable_thinking\":false}"),            -1,             NULL                    },
    {"kwargs null",                       GW_CHAT,       CHAT(",\"chat_template_kwargs\":null"),                                   -1,             NULL                    },
    {"kwargs list",                       GW_CHAT,       CHAT(",\"chat_template_kwargs\":[]"),                                     GW_BAD_VALUE,
     "chat_template_kwargs"                                                                                                                                                },
    {"kwargs hide messages",              GW_CHAT,       CHAT(",\"chat_template_kwargs\":{\"messages\":[]}"),
     GW_BAD_VALUE,                                                                                                                                 "chat_template_kwargs"  },
    {"kwargs hide a function",            GW_CHAT,       CHAT(",\"chat_template_kwargs\":{\"raise_exception\":1}"),
     GW_BAD_VALUE,                                                                                                                                 "chat_template_kwargs"  },
    {"kwargs in completion",              GW_COMPLETION, TEXT(",\"chat_template_kwargs\":{}"),                                     GW_UNKNOWN,
     "chat_template_kwargs"                                                                                                                                                },
    {"documents",                         GW_CHAT,       CHAT(",\"documents\":[{\"title\":\"a\",\"text\":\"b\"}]"),                -1,             NULL                    },
    {"documents []",                      GW_CHAT,       CHAT(",\"documents\":[]"),                                                -1,             NULL                    },
    {"documents {}",                      GW_CHAT,       CHAT(",\"documents\":{}"),                                                GW_BAD_VALUE,   "documents"             },
    {"documents of text",                 GW_CHAT,       CHAT(",\"documents\":[\"a\"]"),                                           GW_BAD_VALUE,   "documents"             },
    {"chat_template",                     GW_CHAT,       CHAT(",\"chat_template\":\"x\""),                                         GW_UNSUPPORTED, "chat_template"         },
    {"no generation prompt",              GW_CHAT,
     CHAT(",\"add_generation_prompt\":false,\"continue_final_message\":false"),                                                    -1,             NULL                    },
    {"continue_final_message",            GW_CHAT,       CHAT(",\"continue_final_message\":true"),                                 GW_UNSUPPORTED,
     "continue_final_message"                                                                                                                                              },

    {"tokenize text",                     GW_TOKENIZE,   TEXT(",\"add_special_tokens\":false,\"return_token_strs\":true"),
     -1,                                                                                                                                           NULL                    },
    {"tokenize chat",                     GW_TOKENIZE,
     CHAT(",\"add_generation_prompt\":false,\"add_special_tokens\":true"),                                                         -1,             NULL                    },
    {"tokenize nothing",                  GW_TOKENIZE,   "{\"model\":\"m\"}",                                                      GW_MISSING,     "prompt"                },
    {"tokenize both",                     GW_TOKENIZE,   TEXT("," USER),                                                           GW_BAD_VALUE,   "messages"              },
    {"tokenize ids",                      GW_TOKENIZE,   "{\"model\":\"m\",\"prompt\":[1]}",                                       GW_BAD_VALUE,   "prompt"                },
    {"tokenize a list",                   GW_TOKENIZE,   "{\"model\":\"m\",\"prompt\":[\"a\"]}",                                   GW_BAD_VALUE,
     "prompt"                                                                                                                                                              },
    {"tokenize no messages",              GW_TOKENIZE,   "{\"model\":\"m\",\"messages\":[]}",                                      GW_BAD_VALUE,
     "messages"                                                                                                                                                            },
    {"tokenize a number",                 GW_TOKENIZE,   "{\"model\":\"m\",\"prompt\":1}",                                         GW_BAD_VALUE,   "prompt"                },
    {"tokenize, no model",                GW_TOKENIZE,   "{\"prompt\":\"a\"}",                                                     GW_MISSING,     "model"                 },
    {"tokenize, max_tokens",              GW_TOKENIZE,   TEXT(",\"max_tokens\":1"),                                                GW_UNKNOWN,     "max_tokens"            },
    {"tokenize, tools",                   GW_TOKENIZE,   CHAT(",\"tools\":[{}]"),                                                  GW_UNSUPPORTED, "tools"                 },
    {"tokenize, kwargs alone",            GW_TOKENIZE,   TEXT(",\"chat_template_kwargs\":{}"),                                     GW_BAD_VALUE,
     "chat_template_kwargs"                                                                                                                                                },
    {"tokenize, documents alone",         GW_TOKENIZE,   TEXT(",\"documents\":[]"),                                                GW_BAD_VALUE,
     "documents"                                                                                                                                                           },
    {"add_special_tokens 1",              GW_TOKENIZE,   TEXT(",\"add_special_tokens\":1"),                                        GW_BAD_VALUE,
     "add_special_tokens"                                                                                                                                                  },
    {"return_token_strs text",            GW_TOKENIZE,   TEXT(",\"return_token_strs\":\"yes\""),                                   GW_BAD_VALUE,
     "return_token_strs"                                                                                                                                                   },
    {"detokenize",                        GW_DETOKENIZE, "{\"model\":\"m\",\"tokens\":[0,4294967295]}",                            -1,             NULL                    },
    {"detokenize nothing",                GW_DETOKENIZE, "{\"model\":\"m\"}",                                                      GW_MISSING,     "tokens"                },
    {"detokenize []",                     GW_DETOKENIZE, "{\"model\":\"m\",\"tokens\":[]}",                                        GW_BAD_VALUE,   "tokens"                },
    {"detokenize text",                   GW_DETOKENIZE, "{\"model\":\"m\",\"tokens\":\"1\"}",                                     GW_BAD_VALUE,
     "tokens"                                                                                                                                                              },
    {"detokenize -1",                     GW_DETOKENIZE, "{\"model\":\"m\",\"tokens\":[-1]}",                                      GW_BAD_VALUE,   "tokens"                },
    {"detokenize 2^32",                   GW_DETOKENIZE, "{\"model\":\"m\",\"tokens\":[4294967296]}",                              GW_BAD_VALUE,
     "tokens"                                                                                                                                                              },
    {"detokenize 1.5",                    GW_DETOKENIZE, "{\"model\":\"m\",\"tokens\":[1.5]}",                                     GW_BAD_VALUE,   "tokens"                },
    {"detokenize lists",                  GW_DETOKENIZE, "{\"model\":\"m\",\"tokens\":[[1]]}",                                     GW_BAD_VALUE,
     "tokens"                                                                                                                                                              },

    {"messages {}",                       GW_CHAT,       "{\"model\":\"m\",\"messages\":{}}",                                      GW_BAD_VALUE,   "messages"              },
    {"messages []",                       GW_CHAT,       "{\"model\":\"m\",\"messages\":[]}",                                      GW_BAD_VALUE,   "messages"              },
    {"message text",                      GW_CHAT,       "{\"model\":\"m\",\"messages\":[\"x\"]}",                                 GW_BAD_VALUE,
     "messages[0]"                                                                                                                                                         },
    {"no role",                           GW_CHAT,       "{\"model\":\"m\",\"messages\":[{\"content\":\"x\"}]}",                   GW_BAD_VALUE,
     "messages[0].role"                                                                                                                                                    },
    {"odd role",                          GW_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\"},{\"role\":\"x\"}]}",                                     GW_BAD_VALUE,   "messages[1].role"      },
    {"tool role",                         GW_CHAT,       "{\"model\":\"m\",\"messages\":[{\"role\":\"tool\",\"content\":\"x\"}]}",
     GW_UNSUPPORTED,                                                                                                                               "messages[0].role"      },
    {"no content",                        GW_CHAT,       "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"}]}",                   GW_MISSING,
     "messages[0].content"                                                                                                                                                 },
    {"content null",                      GW_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":null}]}",                                                      GW_BAD_VALUE,
     "messages[0].content"                                                                                                                                                 },
    {"parts",                             GW_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"name\":\"n\",\"content\":"
     "[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}]}",                                                 -1,             NULL                    },
    {"image part",                        GW_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":"
     "[{\"type\":\"image_url\",\"image_url\":{}}]}]}",                                                                             GW_UNSUPPORTED, "messages[0].content[0]"},
    {"part without text",                 GW_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]}",                                     GW_BAD_VALUE,   "messages[0].content[0]"},
    {"no parts",                          GW_CHAT,       "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":[]}]}",
     GW_BAD_VALUE,                                                                                                                                 "messages[0].content"   },
    {"tool calls",                        GW_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{}]}]"
     "}",                                                                                                                          GW_UNSUPPORTED, "messages[0].tool_calls"},

    {"prompt ids",                        GW_COMPLETION, "{\"model\":\"m\",\"prompt\":[1,2,3]}",                                   -1,             NULL                    },
    {"prompt in a list",                  GW_COMPLETION, "{\"model\":\"m\",\"prompt\":[\"x\"]}",                                   -1,             NULL                    },
    {"ids in a list",                     GW_COMPLETION, "{\"model\":\"m\",\"prompt\":[[1,2]]}",                                   -1,             NULL                    },
    {"two prompts",                       GW_COMPLETION, "{\"model\":\"m\",\"prompt\":[\"x\",\"y\"]}",                             GW_UNSUPPORTED,
     "prompt"                                                                                                                                                              },
    {"prompt []",                         GW_COMPLETION, "{\"model\":\"m\",\"prompt\":[]}",                                        GW_BAD_VALUE,   "prompt"                },
    {"prompt [[]]",                       GW_COMPLETION, "{\"model\":\"m\",\"prompt\":[[]]}",                                      GW_BAD_VALUE,   "prompt"                },
    {"prompt {}",                         GW_COMPLETION, "{\"model\":\"m\",\"prompt\":{}}",                                        GW_BAD_VALUE,   "prompt"                },
    {"prompt mixed",                      GW_COMPLETION, "{\"model\":\"m\",\"prompt\":[1,\"x\"]}",                                 GW_BAD_VALUE,
     "prompt"                                                                                                                                                              },
    {"prompt -1",                         GW_COMPLETION, "{\"model\":\"m\",\"prompt\":[-1]}",                                      GW_BAD_VALUE,   "prompt"                },
    {"prompt over 32 bits",               GW_COMPLETION, "{\"model\":\"m\",\"prompt\":[4294967296]}",
     GW_BAD_VALUE,                                                                                                                                 "prompt"                },
};

static void test_refusals(void **state) {
    const struct row *row = *state;
    struct gw_request request = {0};
    struct gw_problem problem = {0};
    bool ok = gw_request_parse(row->kind, fx_span_str(row->body), &request, &problem);
    if (ok != (row->reason < 0)) fail_msg("taken %d: %s", ok, problem.message);
    if (!ok) {
        assert_int_equal(problem.reason, row->reason);
        assert_string_equal(problem.param, row->param ? row->param : "");
        struct fx_http_problem http = gw_problem_http(&problem);
        assert_int_equal(http.status, 400);
        assert_string_equal(http.type, "invalid_request_error");
        assert_int_equal(http.retry_ms, 0);
    }
    gw_request_done(&request);
}

static void test_values(void **state) {
    (void)state;
    struct gw_request request = {0};
    struct gw_problem problem = {0};
    const char *body =
        CHAT(",\"max_tokens\":7,\"max_completion_tokens\":9,\"temperature\":0.25,"
             "\"top_p\":0.5,\"top_k\":40,\"min_p\":0.125,\"seed\":-1,\"stream\":true,"
             "\"stream_options\":{\"include_usage\":true}");
    assert_true(gw_request_parse(GW_CHAT, fx_span_str(body), &request, &problem));
    assert_string_equal(request.model, "m");
    assert_int_equal(request.max_tokens, 7); /* the lower ceiling */
    assert_true(request.temperature == 0.25F && request.top_p == 0.5F && request.min_p == 0.125F);
    assert_int_equal(request.top_k, 40);
    assert_true(request.has_seed && request.seed == UINT64_MAX);
    assert_true(request.stream && request.include_usage);
    gw_request_done(&request);
}

static void test_sampling(void **state) {
    (void)state;
    struct gw_request request = {0};
    struct gw_problem problem = {0};
    const char *body = TEXT(",\"typical_p\":0.5,\"presence_penalty\":-1,\"frequency_penalty\":0.25,"
                            "\"repetition_penalty\":1.25,\"min_tokens\":5,\"ignore_eos\":true,"
                            "\"stop\":[\"a\",\"bc\"],\"logit_bias\":{\"7\":-100,\"259\":0.5}");
    assert_true(gw_request_parse(GW_COMPLETION, fx_span_str(body), &request, &problem));
    assert_true(request.typical_p == 0.5F && request.presence == -1 && request.frequency == 0.25F);
    assert_true(request.repetition == 1.25F && request.ignore_eos);
    assert_int_equal(request.min_tokens, 5);
    assert_int_equal(request.bias_count, 2);
    assert_true(request.bias[0].id == 7 && request.bias[0].value == -100);
    assert_true(request.bias[1].id == 259 && request.bias[1].value == 0.5F);
    assert_true(gw_request_check_ids(&request, 260, &problem));
    assert_false(gw_request_check_ids(&request, 259, &problem));
    assert_string_equal(problem.param, "logit_bias");
    gw_request_drop_json(&request);
    assert_int_equal(request.stop_count, 2);
    assert_string_equal(request.stop[0], "a");
    assert_string_equal(request.stop[1], "bc");
    gw_request_done(&request);
    gw_request_done(&request);
}

/* As long as it may be, and one byte more. */
static void test_long_stop(void **state) {
    (void)state;
    for (int more = 0; more < 2; more++) {
        struct gw_request request = {0};
        struct gw_problem problem = {0};
        char stop[GW_STOP_BYTES_MAX + 2] = {0}, body[GW_STOP_BYTES_MAX + 128];
        memset(stop, 'a', (size_t)GW_STOP_BYTES_MAX + (size_t)more);
        (void)snprintf(body, sizeof body, TEXT(",\"stop\":\"%s\""), stop);
        assert_int_equal(gw_request_parse(GW_COMPLETION, fx_span_str(body), &request, &problem),
                         !more);
        if (more) assert_string_equal(problem.param, "stop");
        gw_request_done(&request);
    }
}

static void test_defaults(void **state) {
    (void)state;
    struct gw_request request = {0};
    struct gw_problem problem = {0};
    assert_true(gw_request_parse(GW_CHAT, fx_span_str(CHAT("")), &request, &problem));
    assert_true(request.temperature == 1 && request.top_p == 1 && request.min_p == 0);
    assert_true(!request.max_tokens && !request.top_k && !request.has_seed && !request.stream);
    gw_request_done(&request);
    assert_true(gw_request_parse(GW_COMPLETION, fx_span_str(TEXT(",\"top_p\":0,\"top_k\":-1")),
                                 &request, &problem));
    assert_int_equal(request.max_tokens, GW_COMPLETION_TOKENS_DEFAULT);
    assert_true(request.top_p > 0 && request.top_p <= FLT_MIN); /* only the best, not "off" */
    assert_int_equal(request.top_k, 0);
    gw_request_done(&request);
}

/* What a template gets, as much as it may and one more. */
static void test_template_bounds(void **state) {
    (void)state;
    static const struct {
        const char *field;
        bool list;
        int max;
    } bounds[] = {
        {"chat_template_kwargs", false, GW_VARIABLES_MAX},
        {"documents",            true,  GW_DOCUMENTS_MAX}
    };
    for (size_t i = 0; i < 2 * FX_TEST_COUNT(bounds); i++) {
        char body[8192], item[32];
        int count = bounds[i / 2].max + (int)(i % 2);
        bool list = bounds[i / 2].list;
        struct gw_request request = {0};
        struct gw_problem problem = {0};
        size_t len = (size_t)snprintf(body, sizeof body, "{\"model\":\"m\"," USER ",\"%s\":%c",
                                      bounds[i / 2].field, list ? '[' : '{');
        for (int k = 0; k < count; k++) {
            (void)snprintf(item, sizeof item, list ? "{\"t\":%d}" : "\"v%d\":0", k);
            len += (size_t)snprintf(body + len, sizeof body - len, "%s%s", k ? "," : "", item);
        }
        (void)snprintf(body + len, sizeof body - len, "%c}", list ? ']' : '}');
        assert_int_equal(gw_request_parse(GW_CHAT, fx_span_str(body), &request, &problem),
                         i % 2 == 0);
        if (i % 2) assert_string_equal(problem.param, bounds[i / 2].field);
        gw_request_done(&request);
    }
}

/* The tokenizer's own tokens: around a text unless told otherwise, around a chat only if asked. */
static void test_specials(void **state) {
    (void)state;
    static const struct {
        enum gw_kind kind;
        const char *body;
        bool special;
    } asked[] = {
        {GW_COMPLETION, TEXT(""),                              true },
        {GW_CHAT,       CHAT(""),                              false},
        {GW_TOKENIZE,   TEXT(""),                              true },
        {GW_TOKENIZE,   TEXT(",\"add_special_tokens\":false"), false},
        {GW_TOKENIZE,   CHAT(""),                              false},
        {GW_TOKENIZE,   CHAT(",\"add_special_tokens\":true"),  true },
    };
    for (size_t i = 0; i < FX_TEST_COUNT(asked); i++) {
        struct gw_request request = {0};
        struct gw_problem problem = {0};
        assert_true(
            gw_request_parse(asked[i].kind, fx_span_str(asked[i].body), &request, &problem));
        assert_int_equal(request.add_special, asked[i].special);
        assert_true(request.add_generation_prompt && !request.token_strs);
        gw_request_done(&request);
    }
}

int main(void) {
    enum { OTHERS = 6 };
    struct CMUnitTest tests[FX_TEST_COUNT(rows) + OTHERS] = {
        cmocka_unit_test(test_values),          cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_long_stop),       cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_template_bounds), cmocka_unit_test(test_specials)};
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i + OTHERS] = (struct CMUnitTest){rows[i].name, test_refusals, NULL, NULL,
                                                (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
