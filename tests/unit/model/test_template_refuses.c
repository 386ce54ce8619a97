/* What the subset lacks or a template gets wrong: refused when compiled, with name and line. */
#include "tests/unit/model/text_fixture.h"
#include "common/model/template.h"

struct row {
    const char *name, *source;
    const char *says; /* the part of the error after "chat template: " */
};

static const struct row rows[] = {
    {"macro",                           "a\n\n{% macro f(x) %}{% endmacro %}",                  "line 3: {% macro %} is not supported"          },
    {"call block",                      "{% call f() %}{% endcall %}",                          "line 1: {% call %} is not supported"           },
    {"filter block",                    "{% filter upper %}x{% endfilter %}",                   "line 1: {% filter %} is not"                   },
    {"include",                         "\n{% include 'x' %}",                                  "line 2: {% include %} is not supported"        },
    {"import",                          "{% import 'x' as y %}",                                "{% import %} is not supported"                 },
    {"from",                            "{% from 'x' import y %}",                              "{% from %} is not supported"                   },
    {"extends",                         "{% extends 'x' %}",                                    "{% extends %} is not supported"                },
    {"block",                           "{% block x %}{% endblock %}",                          "{% block %} is not supported"                  },
    {"raw",                             "\n{%- raw -%}{{ x }}{% endraw %}",                     "line 2: {% raw %} is not supported"            },
    {"with",                            "{% with x = 1 %}{% endwith %}",                        "{% with %} is not supported"                   },
    {"generation",                      "{% generation %}{% endgeneration %}",                  "{% generation %} is not supported"             },
    {"do",                              "{% do x %}",                                           "{% do %} is not supported"                     },
    {"unknown statement",               "{% frobnicate %}",                                     "{% frobnicate %} is not supported"             },
    {"no statement",                    "{% %}",                                                "line 1: '%}' is unexpected, want a statement"  },
    {"set of a block",                  "{% set x %}a{% endset %}",                             "{% set %} of a block is not supported"         },
    {"set of an attribute",             "{% set ns.x = 1 %}",                                   "{% set %} of an attribute is not supported"    },
    {"set of two",                      "{% set a, b = 1, 2 %}",                                "{% set %} of a tuple is not supported"         },
    {"set to a tuple",                  "{% set a = 1, 2 %}",                                   "a tuple is not supported"                      },
    {"set of a constant",               "{% set none = 1 %}",                                   "can't assign to 'none'"                        },
    {"set of loop",                     "{% set loop = 1 %}",                                   "can't assign to 'loop'"                        },
    {"set without a name",              "{% set 1 = 1 %}",                                      "a number is unexpected, want a variable's name"},
    {"for over two",                    "{% for a, b in x %}{% endfor %}",                      "over several variables is not"                 },
    {"for recursive",                   "{% for a in x recursive %}{% endfor %}",               "recursive %} is not supported"                 },
    {"for without in",                  "{% for a of x %}{% endfor %}",                         "'of' is unexpected, want 'in'"                 },
    {"for of a condition",              "{% for a in x if y else z %}{% endfor %}",             "'else' is unexpected"                          },
    {"namespace",                       "\n\n\n{{ namespace(x=1) }}",                           "line 4: function namespace() is not supported" },
    {"range",                           "{% for i in range(3) %}{% endfor %}",                  "function range() is not supported"             },
    {"strftime_now",                    "{{ strftime_now('%Y') }}",                             "function strftime_now() is not supported"      },
    {"function of a variable",          "{{ x[0](1) }}",                                        "calling a value is not supported"              },
    {"method",                          "{{ x.items() }}",                                      "method 'items' is not supported"               },
    {"method get",                      "{{ message.get('x') }}",                               "method 'get' is not supported"                 },
    {"filter",                          "{{ x | selectattr('a') }}",                            "filter 'selectattr' is not supported"          },
    {"filter with a path",              "{{ x | a.b }}",                                        "filter 'a' is not supported"                   },
    {"test",                            "{{ x is callable }}",                                  "test 'callable' is not supported"              },
    {"filter argument by name",         "{{ x | tojson(indent=2) }}",                           "argument 'indent=' is not supp"                },
    {"filter argument out of order",    "{{ x | default(boolean=true) }}",                      "argument 'boolean='"                           },
    {"too many filter arguments",       "{{ x | trim('a', 'b') }}",                             "trim: 2 arguments, want 0 to 1"                },
    {"too few test arguments",          "{{ x is equalto() }}",                                 "equalto: 0 arguments, want 1 to 1"             },
    {"too few method arguments",        "{{ x.endswith() }}",                                   "endswith: 0 arguments, want 1 to 1"            },
    {"raise without text",              "{{ raise_exception() }}",                              "raise_exception: 0 arguments"                  },
    {"star arguments",                  "{{ x | default(*y) }}",                                "'*' in a call is not supported"                },
    {"star star arguments",             "{{ x | default(**y) }}",                               "'*' in a call is not supported"                },
    {"mapping literal",                 "{{ {'a': 1} }}",                                       "a mapping literal {...} is not supported"      },
    {"tuple",                           "{{ (1, 2) }}",                                         "a tuple is not supported"                      },
    {"empty tuple",                     "{{ () }}",                                             "a tuple is not supported"                      },
    {"bare tuple",                      "{{ 1, 2 }}",                                           "a tuple is not supported"                      },
    {"tuple as a key",                  "{{ x[1, 2] }}",                                        "a tuple is not supported"                      },
    {"power",                           "{{ 2 ** 3 }}",                                         "operator '**' is not supported"                },
    {"chained comparison",              "{{ 1 < 2 < 3 }}",                                      "a chained comparison is not supported"         },
    {"hexadecimal",                     "{{ 0x10 }}",                                           "this form of a number is not supported"        },
    {"underscores",                     "{{ 1_000 }}",                                          "this form of a number is not supported"        },
    {"leading zero",                    "{{ 012 }}",                                            "this form of a number is not supported"        },
    {"huge integer",                    "{{ 12345678901234567890 }}",                           "integer 12345678901234567890 is too large"     },
    {"named character",                 "{{ '\\N{BULLET}' }}",                                  "\\N in a string is not supported"              },
    {"short escape",                    "{{ '\\x4' }}",                                         "want 2 hex digits"                             },
    {"surrogate escape",                "{{ '\\ud83e' }}",                                      "no character"                                  },
    {"open string",                     "\n{{ 'abc }}",                                         "line 2: a string is never closed"              },
    {"open expression",                 "\n{{ 1",                                               "line 2: '{{' is never closed"                  },
    {"open statement",                  "{% if 1",                                              "line 1: '{%' is never closed"                  },
    {"open comment",                    "\n\n{# 1",                                             "line 3: '{#' is never closed"                  },
    {"open if",                         "a\n{% if 1 %}b\n\n",                                   "line 2: {% if %} is never closed"              },
    {"open for",                        "{% for a in b %}{% if 1 %}{% endif %}",                "line 1: {% for %} is never closed"             },
    {"endif alone",                     "\n{% endif %}",                                        "line 2: {% endif %} without its block"         },
    {"endfor alone",                    "{% endfor %}",                                         "{% endfor %} without its block"                },
    {"else alone",                      "{% else %}",                                           "{% else %} without its block"                  },
    {"elif alone",                      "{% elif 1 %}",                                         "{% elif %} without its block"                  },
    {"elif in for",                     "{% for a in b %}{% elif 1 %}{% endfor %}",             "{% elif %} without its block"                  },
    {"elif after else",                 "{% if 1 %}{% else %}{% elif 1 %}{% endif %}",          "{% elif %} without"                            },
    {"else twice",                      "{% if 1 %}{% else %}{% else %}{% endif %}",            "{% else %} without its block"                  },
    {"crossed blocks",                  "{% if 1 %}{% for a in b %}{% endif %}{% endfor %}",    "{% endif %} without"                           },
    {"break alone",                     "{% break %}",                                          "{% break %} without its block"                 },
    {"continue in for else",            "{% for a in b %}{% else %}{% continue %}{% endfor %}",
     "{% continue %} without its block"                                                                                                         },
    {"empty expression",                "{{ }}",                                                "'}}' is unexpected, want an expression"        },
    {"two values",                      "{{ a b }}",                                            "'b' is unexpected, want '}}'"                  },
    {"operator without a value",        "{{ 1 + }}",                                            "'}}' is unexpected, want an expression"        },
    {"open parenthesis",                "{{ (1 }}",                                             "'}}' is unexpected, want ')'"                  },
    {"open list",                       "{{ [1 }}",                                             "'}}' is unexpected, want ','"                  },
    {"empty subscript",                 "{{ a[] }}",                                            "']' is unexpected, want a key"                 },
    {"attribute without a name",        "{{ a. }}",                                             "'}}' is unexpected, want a name or number"     },
    {"filter without a name",           "{{ a | }}",                                            "'}}' is unexpected, want a name"               },
    {"if without a condition",          "{% if %}{% endif %}",                                  "'%}' is unexpected, want an expression"        },
    {"endif with more",                 "{% if 1 %}{% endif x %}",                              "'x' is unexpected, want '%}'"                  },
    {"assignment in an expression",     "{{ a = 1 }}",                                          "'=' is unexpected"                             },
    {"odd character",                   "\n{{ a ? b }}",                                        "line 2: unexpected character '?'"              },
    {"exclamation mark",                "{{ !a }}",                                             "unexpected character '!'"                      },
    {"semicolon",                       "{{ a; b }}",                                           "';' is unexpected"                             },
    {"line counts newlines in strings", "{{ 'a\n\nb' }}{% x %}",                                "line 3: {% x %}"                               },
    {"line counts trimmed newlines",    "{%- if 1 -%}\n\n{%- x %}",                             "line 3: {% x %}"                               },
};

static void test_refused(void **state) {
    const struct row *row = *state;
    fx_error err = {0};
    fx_auto(fx_template) template = NULL;
    assert_false(fx_template_compile(fx_span_str(row->source), &template, &err));
    assert_null(template);
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    assert_memory_equal(err.text, "chat template: line ", strlen("chat template: line "));
    if (!strstr(err.text, row->says)) fail_msg("'%s' lacks '%s'", err.text, row->says);
}

FX_TEST_MAIN(test_refused, rows)
