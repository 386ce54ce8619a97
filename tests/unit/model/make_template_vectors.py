#!/usr/bin/env python3
"""Writes template-vectors.json beside itself: what Jinja2 makes of each template.

Needs `pip install jinja2` (3.1.6 made the committed file). The environment is that of
transformers' apply_chat_template. "output" null: rendering fails; "message": raise_exception's.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../tools/oracle"))
import jinja_oracle  # noqa: E402
import template_cases  # noqa: E402

USER = {"role": "user", "content": "Call me Ishmael."}
CHAT = [
    {"role": "system", "content": "  Be brief.\n"},
    {"role": "user", "content": "Who is <|eos|>?"},
    {"role": "assistant", "content": "Häß, 東京 🦈"},
    {"role": "user", "content": "\n\ttell 'me' \"more\" \\ \u0001\u00a0"},
]
BUNDLED = (
    "{{ bos_token }}{% for message in messages %}{{ message['content'] }}"
    "{% if not loop.last %}{{ '\n\n' }}{% endif %}{% endfor %}"
)
CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% endif %}"
)
# name, template [, messages [, add_generation_prompt]]
CASES = [
    ("bundled", BUNDLED, CHAT),
    ("bundled, one message", BUNDLED, [USER]),
    ("chatml", CHATML, CHAT, True),
    ("chatml without prompt", CHATML, CHAT),
    ("text", "just text"),
    ("nothing", ""),
    ("one newline at the end goes", "a\n"),
    ("one of two newlines goes", "a\n\n"),
    ("crlf", "a\r\nb\rc\r\n"),
    ("lone braces", "a { b } c {x} %} }}"),
    ("comment", "a{# no {{ 1 }} #}b"),
    ("comment eats its newline", "a{# x #}\nb"),
    ("comment strips left", "a\n   {# x #}b"),
    ("comment dashes", "a  {#- x -#}  b"),
    ("comment plus", "a\n  {#+ x +#}\nb"),
    ("comment of a dash", "a {#-#} b"),
    ("trim_blocks", "{% if true %}\na\n{% endif %}\nb"),
    ("trim_blocks one newline only", "{% if true %}\n\na{% endif %}"),
    ("trim_blocks not after expressions", "{{ 1 }}\na"),
    ("lstrip_blocks", "x\n   {% if true %}a{% endif %}"),
    ("lstrip_blocks at the start", "   {% if true %}a{% endif %}"),
    ("lstrip_blocks not after text", "x   {% if true %}a{% endif %}"),
    ("lstrip_blocks not for expressions", "x\n   {{ 1 }}"),
    ("lstrip_blocks after a block", "{% if true %}   {% endif %}x"),
    ("lstrip_blocks after a trimmed newline", "{% if true %}\n   {% if true %}y{% endif %}{% endif %}"),
    ("plus keeps the left", "x\n   {%+ if true %}a{% endif %}"),
    ("plus keeps the newline", "{% if true +%}\na{% endif %}"),
    ("dash strips both", "x \n\t {%- if true -%} \n\n a \n {%- endif -%} \n y"),
    ("dash on expressions", "x \n {{- 1 -}} \n\n y"),
    ("dash strips exotic space", "x\u00a0\u2003{{- 1 -}}\u3000y"),
    ("dash before minus", "{{ 3 -}} x {{- -1 }}"),
    ("numbers", "{{ 7 }} {{ 0 }} {{ 1.5 }} {{ 1e3 }} {{ 2.5e-7 }} {{ 1e22 }} {{ 100000.0 }}"),
    ("floats", "{{ 0.1 }} {{ 1/3 }} {{ 1e16 }} {{ 1e15 }} {{ 0.0001 }} {{ 0.00001 }} {{ 5.0 }}"),
    ("strings", "{{ 'a' }}{{ \"b\" }}{{ 'it''s' }}{{ \"'\" }}{{ '\"' }}{{ '' }}"),
    ("escapes", r"{{ 'a\tb\nc\\d\'e\"f\x41\u00e9\U0001f988\101\q\/' }}"),
    ("braces in strings", "{{ '}}' }}{{ '{%' ~ \"%}\" }}{% if '%}' %}x{% endif %}"),
    ("newline in a string", "{{ 'a\nb' }}"),
    ("constants", "{{ true }} {{ True }} {{ false }} {{ none }} {{ None }}"),
    ("undefined prints nothing", "[{{ nothing }}]"),
    ("list literal", "{% for x in [1, 'b', 2.5, true, none,] %}{{ x }};{% endfor %}"),
    ("empty list", "{% for x in [] %}x{% else %}empty{% endfor %}"),
    ("attribute", "{{ messages[0].role }}", [USER]),
    ("item", "{{ messages[0]['role'] }}", [USER]),
    ("item by a variable", "{% set k = 'role' %}{{ messages[0][k] }}", [USER]),
    ("missing attribute", "[{{ messages[0].name }}]", [USER]),
    ("missing item", "[{{ messages[0]['name'] }}][{{ messages[9] }}]", [USER]),
    ("attribute of missing", "{{ messages[0].name.first }}", [USER]),
    ("attribute of undefined", "{{ nobody.name }}"),
    ("negative index", "{{ messages[-1].content }}|{{ messages[-9] }}", CHAT),
    ("index with a dot", "{{ messages.0.role }}", CHAT),
    ("string index", "{{ 'héllo'[1] }}{{ 'héllo'[-1] }}[{{ 'abc'[7] }}]"),
    ("slice", "{% for m in messages[1:] %}{{ m.role }};{% endfor %}", CHAT),
    ("slice ends", "{{ 'abcdef'[:2] }} {{ 'abcdef'[2:] }} {{ 'abcdef'[1:3] }} {{ 'abcdef'[:] }}"),
    ("slice negative", "{{ 'abcdef'[-2:] }} {{ 'abcdef'[:-2] }} {{ 'abcdef'[-4:-1] }} {{ 'ab'[5:] }}"),
    ("slice steps", "{{ 'abcdef'[::2] }} {{ 'abcdef'[::-1] }} {{ 'abcdef'[4:0:-2] }} {{ 'abcdef'[9::-3] }}"),
    ("slice none", "{{ 'abcdef'[none:3] }}{{ 'abc'[-9:2] }}{{ 'abc'[2:1] }}"),
    ("slice of a list with steps", "{% for x in [1,2,3,4,5][::-2] %}{{ x }}{% endfor %}"),
    ("slice of characters", "{{ '東京🦈é'[1:3] }} {{ '東京🦈é'[::-1] }}"),
    ("slice by zero", "{{ 'abc'[::0] }}"),
    ("slice by text", "{% set x = 'abc' %}{{ x['a':] }}"),
    ("slice of none", "{% set x = none %}{{ x[1:] }}"),
    ("plus", "{{ 1 + 2 }} {{ 1 + 2.5 }} {{ 'a' + 'b' }} {{ true + 1 }}"),
    ("plus of lists", "{% for x in [1] + [2, 3] %}{{ x }}{% endfor %}"),
    ("plus of text and number", "{{ 'a' + 1 }}"),
    ("plus of undefined", "{{ 'a' + b }}"),
    ("minus", "{{ 5 - 7 }} {{ -3 }} {{ +3 }} {{ - 2.5 }} {{ 1 - -1 }} {{ 3-1 }}"),
    ("times", "{{ 3 * 4 }} {{ 'ab' * 3 }} {{ 2 * 'x' }} {{ 'x' * -1 }} {{ 1.5 * 2 }}"),
    ("divide", "{{ 7 / 2 }} {{ 6 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7.5 // 2 }} {{ -7.5 // 2 }}"),
    ("modulo", "{{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ -7.5 % 2 }} {{ 6.0 % 2 }}"),
    ("divide by zero", "{{ 1 / 0 }}"),
    ("floor divide by zero", "{{ 1 // 0 }}"),
    ("modulo zero", "{{ 1 % 0 }}"),
    ("precedence", "{{ 1 + 2 * 3 - 4 / 2 }} {{ (1 + 2) * 3 }} {{ 2 * 3 % 4 }} {{ -2 * 3 }}"),
    ("tilde", "{{ 1 ~ 'a' ~ 2.0 ~ none ~ true ~ nothing }}"),
    ("tilde and plus", "{{ 'a' ~ 1 + 2 }}"),
    ("tilde binds tighter than plus", "{{ 1 ~ 2 + 'x' }}"),
    ("and or", "{{ 1 and 2 }} {{ 0 and 2 }} {{ 0 or 'x' }} {{ 1 or 2 }} {{ '' or none or 'z' }}"),
    ("and or are lazy", "{{ true or nobody.x }} {{ false and nobody.x }}"),
    ("and before or", "{{ 1 or 0 and 0 }} {{ (1 or 0) and 0 }}"),
    ("not", "{{ not true }} {{ not '' }} {{ not not 1 }} {{ not 1 == 2 }}"),
    ("truth", "{% for x in [0, 0.0, '', [], none, false, 1, 0.5, 'a', [0], true] %}{{ 1 if x else 0 }}{% endfor %}"),
    ("equal", "{{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' == 'a' }} {{ '1' == 1 }} {{ none == none }} {{ [1,'a'] == [1,'a'] }}"),
    ("unequal", "{{ 1 != 2 }} {{ 'a' != 'a' }} {{ [1] != [2] }} {{ none != false }} {{ x == y }} {{ x == none }}"),
    ("order", "{{ 1 < 2 }} {{ 2 <= 2 }} {{ 3 > 4 }} {{ 'b' >= 'a' }} {{ 'a' < 'é' }} {{ 'ab' < 'b' }} {{ 1 < 1.5 }}"),
    ("order of text and number", "{{ 'a' < 1 }}"),
    ("order of undefined", "{{ x < 1 }}"),
    ("in", "{{ 'a' in 'cat' }} {{ 'x' in 'cat' }} {{ '' in 'cat' }} {{ 2 in [1, 2] }} {{ '2' in [1, 2] }}"),
    ("not in", "{{ 'a' not in 'cat' }} {{ 3 not in [1, 2] }} {{ 1 in x }}"),
    ("in a message", "{{ 'role' in messages[0] }} {{ 'name' in messages[0] }}", [USER]),
    ("number in text", "{{ 1 in 'a1' }}"),
    ("in none", "{{ 1 in none }}"),
    ("is defined", "{{ x is defined }} {{ messages is defined }} {{ x is undefined }} {{ x is not defined }}"),
    ("is none", "{{ none is none }} {{ 0 is none }} {{ x is none }} {{ tools is none }} {{ tools is not none }}"),
    ("is string", "{{ 'a' is string }} {{ 1 is string }} {{ messages[0].content is string }}", [USER]),
    ("is number", "{{ 1 is number }} {{ 1.5 is number }} {{ true is number }} {{ '1' is number }}"),
    ("is integer", "{{ 1 is integer }} {{ true is integer }} {{ 1.0 is integer }} {{ 1.0 is float }} {{ true is boolean }}"),
    ("is true", "{{ true is true }} {{ 1 is true }} {{ false is false }} {{ 0 is false }}"),
    ("is mapping", "{{ messages[0] is mapping }} {{ [] is mapping }} {{ 'a' is mapping }}", [USER]),
    ("is sequence", "{{ [] is sequence }} {{ 'a' is sequence }} {{ 1 is sequence }} {{ x is sequence }}"),
    ("is iterable", "{{ [] is iterable }} {{ 'a' is iterable }} {{ 1 is iterable }} {{ x is iterable }} {{ none is iterable }}"),
    ("is odd", "{{ 3 is odd }} {{ 4 is odd }} {{ 4 is even }} {{ -3 is odd }}"),
    ("is divisibleby", "{{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 9 is not divisibleby 2 }}"),
    ("is equalto", "{{ 1 is equalto 1 }} {{ 1 is eq(2) }} {{ 'a' is ne 'b' }} {{ 'a' is in ['a'] }} {{ 1 is not in [1] }}"),
    ("is in conditions", "{{ 'y' if x is defined else 'n' }} {{ x is defined and true }} {{ x is defined or 5 }}"),
    ("if", "{% if 1 %}a{% endif %}{% if 0 %}b{% endif %}"),
    ("if else", "{% if 0 %}a{% else %}b{% endif %}"),
    ("elif", "{% for x in [1,2,3,4] %}{% if x == 1 %}a{% elif x == 2 %}b{% elif x == 3 %}c{% else %}d{% endif %}{% endfor %}"),
    ("elif without else", "{% for x in [1,2,3] %}{% if x == 1 %}a{% elif x == 2 %}b{% endif %}.{% endfor %}"),
    ("nested if", "{% if 1 %}{% if 0 %}a{% else %}{% if 1 %}b{% endif %}{% endif %}c{% endif %}"),
    ("inline if", "{{ 'a' if true else 'b' }}{{ 'a' if false else 'b' }}"),
    ("inline if without else", "[{{ 'a' if false }}]{{ 'a' if true }}"),
    ("inline if chain", "{% for x in [1,2,3] %}{{ 'a' if x == 1 else 'b' if x == 2 else 'c' }}{% endfor %}"),
    ("inline if is lazy", "{{ 'a' if true else nobody.x }}{{ nobody.x if false else 'b' }}"),
    ("inline if inside", "{{ 1 + (2 if x else 3) * 4 }} {{ 'a' ~ ('b' if 1 else 'c') ~ 'd' }}"),
    ("inline if with and", "{{ 'a' and 'q' if 1 and 0 or 1 else 'b' }}"),
    ("inline if in a call", "{{ 'x'|default('a' if 1 else 'b') }}{{ nothing|default('a' if 0 else 'b') }}"),
    ("for", "{% for m in messages %}{{ m.role }},{% endfor %}", CHAT),
    ("for else", "{% for m in messages %}{{ m.role }}{% else %}none{% endfor %}"),
    ("for else taken not", "{% for x in [1] %}a{% else %}b{% endfor %}"),
    ("for over text", "{% for c in 'aé🦈' %}({{ c }}){% endfor %}"),
    ("for over a message", "{% for k in messages[0] %}{{ k }};{% endfor %}", [USER]),
    ("for over undefined", "{% for c in nothing %}a{% else %}b{% endfor %}"),
    ("for over none", "{% for c in none %}a{% endfor %}"),
    ("for over a number", "{% for c in 3 %}a{% endfor %}"),
    ("for if", "{% for m in messages if m.role == 'user' %}{{ loop.index }}/{{ loop.length }}:{{ m.role }};{% endfor %}", CHAT),
    ("for if none", "{% for x in [1,2] if x > 5 %}{{ x }}{% else %}none{% endfor %}"),
    ("for if of nothing", "{% for x in [] if x > 5 %}{{ x }}{% else %}none{% endfor %}"),
    ("for if with and", "{% for x in [1,2,3,4] if x > 1 and x != 3 %}{{ x }}{% endfor %}"),
    ("for if nested", "{% for x in [1,2,3] if x != 2 %}{% for y in [1,2,3] if y != x %}{{ x }}{{ y }} {% endfor %}{% endfor %}"),
    ("loop index", "{% for x in 'abc' %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }} {% endfor %}"),
    ("loop first last", "{% for x in 'abc' %}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}"),
    ("loop neighbours", "{% for x in 'abc' %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}"),
    ("loop neighbours defined", "{% for x in 'ab' %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}"),
    ("loop as items", "{% for x in 'ab' %}{{ loop['index'] }}{{ loop.depth }}{{ loop|length }}{% endfor %}"),
    ("loop nested", "{% for x in 'ab' %}{% for y in 'cd' %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}"),
    ("loop outer kept", "{% for x in 'ab' %}{% set outer = loop %}{% for y in 'cd' %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}"),
    ("loop outside", "[{{ loop }}]"),
    ("break", "{% for x in [1,2,3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% else %}e{% endfor %}."),
    ("continue", "{% for x in [1,2,3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}."),
    ("continue at the end", "{% for x in [1,2] %}{{ x }}{% if x == 2 %}{% continue %}{% endif %},{% else %}e{% endfor %}."),
    ("break of the inner loop", "{% for x in 'ab' %}{% for y in 'cd' %}{{ x }}{{ y }}{% break %}{% endfor %}{{ x }}{% endfor %}"),
    ("break from an else", "{% for x in 'ab' %}{% for y in [] %}{% else %}{% set z = 1 %}{{ x }}{% break %}{% endfor %}n{% endfor %}[{{ z }}]"),
    ("continue from an else", "{% for x in 'abc' %}{% for y in [] %}{% else %}{{ x }}{% set z = x %}{% continue %}{% endfor %}n{% endfor %}[{{ z }}]"),
    ("continue from nested ifs", "{% for x in 'abc' %}{% if x != 'b' %}{% if true %}{% set z = x %}{{ z }}{% continue %}{% endif %}{% endif %}[{{ z }}]{% endfor %}"),
    ("set", "{% set x = 1 %}{{ x }}{% set x = x + 1 %}{{ x }}"),
    ("set in if", "{% if true %}{% set x = 1 %}{% endif %}{{ x }}"),
    ("set in if not run", "{% if false %}{% set x = 1 %}{% endif %}[{{ x }}]"),
    ("set in a loop stays there", "{% set x = 0 %}{% for i in [1,2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}"),
    ("set in a loop starts anew", "{% for i in [1,2] %}[{{ y }}]{% set y = i %}{{ y }}{% endfor %}[{{ y }}]"),
    ("set in for else", "{% for i in [] %}{% else %}{% set y = 1 %}{{ y }}{% endfor %}[{{ y }}]"),
    ("loop variable hides and leaves", "{% set x = 'o' %}{% for x in 'ab' %}{{ x }}{% endfor %}{{ x }}"),
    ("iterable seen before the target", "{% set x = 'ab' %}{% for x in x %}{{ x }}{% endfor %}"),
    ("set of builtins", "{% set messages = messages[1:] %}{{ messages|length }}", CHAT),
    ("set of a message", "{% set m = messages[0] %}{{ m.content }}", [USER]),
    ("filter trim", "[{{ '  a b \n' | trim }}][{{ 'xxaxx'|trim('x') }}][{{ ' 1 '|trim(' ') }}][{{ 5|trim }}][{{ 'xay'|trim(chars='xy') }}]"),
    ("filter trim exotic", "[{{ '\u00a0\u2003a\u3000\x1c' | trim }}][{{ '東a京'|trim('京東') }}]"),
    ("filter length", "{{ 'aé🦈'|length }} {{ [1,2]|length }} {{ messages|count }} {{ x|length }} {{ messages[0]|length }}", [USER]),
    ("filter length of a number", "{{ 5|length }}"),
    ("filter upper lower", "{{ 'aBc1'|upper }} {{ 'aBc1'|lower }} {{ none|upper }} {{ 1.5|lower }} [{{ x|upper }}]"),
    ("filter default", "{{ x|default('d') }} {{ 'v'|default('d') }} [{{ x|d }}] {{ ''|default('d') }} {{ ''|default('d', true) }} {{ none|default('d', boolean=true) }} {{ none|default('d') }}"),
    ("filter default by name", "{{ x|default(default_value='d') }}"),
    ("filter default of a missing attribute", "{{ messages[0].name|default('anon') }}", [USER]),
    ("filter join", "{{ [1,'b',none,2.0]|join(', ') }} {{ 'abc'|join('-') }} {{ []|join('x') }} {{ ['a','b']|join }} {{ ['a']|join('x') }} {{ ['a','b']|join(d='/') }} {{ ['a','b']|join(1) }}"),
    ("filter tojson", "{{ 'a\"b\\\\\n\t<é🦈\x01\x7f>'|tojson }} {{ 1|tojson }} {{ 1.5|tojson }} {{ true|tojson }} {{ none|tojson }} {{ [1, 'x', [none, []]]|tojson }}"),
    ("filter tojson of messages", "{{ messages|tojson }} {{ messages[1]|tojson }}", CHAT),
    ("filter tojson of undefined", "{{ x|tojson }}"),
    ("filter first last", "{{ 'abc'|first }}{{ 'abc'|last }}{{ [1,2]|first }}{{ [1,2]|last }}[{{ []|first }}]"),
    ("filter string", "{{ 1|string + 'a' }}{{ none|string }}"),
    ("filter chain", "{{ '  aB '|trim|upper|length }}"),
    ("filter binds tighter", "{{ 1 ~ ' a '|trim }}{{ -1|string + 'x' }}{{ 'a' + 'b'|upper }}"),
    ("filter after parentheses", "{{ ('a' + 'b')|upper }}"),
    ("filter in for", "{% for c in 'ab'|upper %}{{ c }}.{% endfor %}"),
    ("method strip", "[{{ ' a '.strip() }}][{{ ' a '.lstrip() }}][{{ ' a '.rstrip() }}][{{ 'xax'.strip('x') }}][{{ 'xax'.lstrip('x') }}][{{ 'xax'.rstrip('x') }}]"),
    ("method strip on a message", "[{{ messages[0].content.strip() }}][{{ messages[0]['content'].strip()|upper }}]", [{"role": "user", "content": " \n hi \t"}]),
    ("method upper", "{{ 'aB'.upper() }}{{ 'aB'.lower() }}"),
    ("method startswith", "{{ 'abc'.startswith('ab') }} {{ 'abc'.startswith('b') }} {{ 'abc'.endswith('bc') }} {{ 'abc'.endswith('') }} {{ 'a'.endswith('ba') }}"),
    ("method of undefined", "{{ x.strip() }}"),
    ("method of a number", "{{ 5.strip() }}"),
    ("raise_exception", "a{{ raise_exception('no ' ~ 'way') }}b"),
    ("raise_exception not reached", "{% if false %}{{ raise_exception('x') }}{% endif %}ok"),
    ("add_generation_prompt", "{{ add_generation_prompt }}", [], True),
    ("add_generation_prompt off", "{{ add_generation_prompt }}{% if add_generation_prompt %}x{% endif %}"),
    ("tokens", "{{ bos_token }}{{ eos_token }}{{ bos_token ~ 'x' ~ eos_token }}"),
    ("spaces in tags", "{%if true%}a{%endif%}{{1}}{{  1  }}{{\n1\n}}"),
    ("trailing commas", "{% for x in [1,2,] %}{{ x }}{% endfor %}{{ x|default('a',) }}"),
    ("underscores in names", "{% set _a1 = 5 %}{{ _a1 }}"),
    ("integer then text", "{{ 1 }}.5"),
    ("unicode text", "é{{ 'ü' }}東{# 京 #}🦈"),
]


def row_of(name, template, messages=(), fields=None):
    fields = {"prompt": fields} if isinstance(fields, bool) else fields or {}
    row = {"name": name, "template": template, "messages": list(messages), "prompt": False}
    row |= {"bos_token": "<|bos|>", "eos_token": "<|eos|>"} | fields
    return jinja_oracle.render(row)


def main():
    rows = [row_of(*case) for case in CASES + template_cases.CASES]
    names = [row["name"] for row in rows]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"several cases named {twice}"
    with open(os.path.join(HERE, "template-vectors.json"), "w", encoding="ascii") as file:
        json.dump(rows, file, ensure_ascii=True, indent=1)
        file.write("\n")
    print(len(rows), "templates,", sum(row["output"] is None for row in rows), "fail")


main()
