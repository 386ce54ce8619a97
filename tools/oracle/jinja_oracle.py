"""Jinja2 as transformers' apply_chat_template sets it up: the oracle of our chat templates.

Needs jinja2 (3.1.6 made the committed vectors).
"""
import datetime
import json

import jinja2
import jinja2.ext
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = 1718454896  # 2024-06-15 12:34:56 UTC


class Generation(Extension):
    """{% generation %} of transformers, without the tracking."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_support")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    @jinja2.pass_eval_context
    def _support(self, context, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def strftime_now(format):
    return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).strftime(format)


def environment():
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = strftime_now
    return made


ENVIRONMENT = environment()
COMPILED = {}


def render(row):
    """Fills row["output"], or row["message"] where the template raises; both None: it fails."""
    source = row["template"]
    if source not in COMPILED:
        COMPILED[source] = ENVIRONMENT.from_string(source)
    tokens = {name: row[name] for name in ("bos_token", "eos_token") if row.get(name)}
    row["output"] = row["message"] = None
    try:
        row["output"] = COMPILED[source].render(
            messages=row["messages"],
            tools=row.get("tools"),
            documents=row.get("documents"),
            add_generation_prompt=row["prompt"],
            **tokens,
            **row.get("variables", {}),
        )
    except (jinja2.exceptions.UndefinedError, jinja2.exceptions.SecurityError):
        pass
    except jinja2.exceptions.TemplateRuntimeError:
        pass
    except jinja2.exceptions.TemplateError as error:
        row["message"] = error.message
    except RecursionError:
        row["limit"] = True  # ours may say so too
    except (TypeError, ValueError, ZeroDivisionError, KeyError, OverflowError, IndexError, AttributeError):
        pass
    return row
