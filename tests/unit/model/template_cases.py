"""Templates of make_template_vectors.py for what published ones need beyond text and loops:
(name, template[, messages[, fields of the row]]).
"""

USER = {"role": "user", "content": "Call me Ishmael.\ue000"}
TOOL = {
    "type": "function",
    "function": {
        "name": "dive\ue000",
        "description": "To the \"deep\" & <back>\ue000",
        "parameters": {
            "type": "object",
            "properties": {"depth": {"type": "integer", "items": 3}, "keys": {"type": "string"}},
            "required": ["depth"],
            "x": [1, 2.5, 1e100, -0.0, True, False, None, [], {}, "é\n\ue000"],
        },
    },
}
CALLS = [
    USER,
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "dive", "arguments": {"depth": 3}}}]},
    {"role": "tool", "content": "done\ue000", "tool_call_id": "1"},
    {"role": "assistant", "content": [{"type": "text", "text": "There."}, {"type": "image"}]},
]
TOOLS = {"tools": [TOOL]}
PEOPLE = (
    "{% set people = [{'n': 'Bo', 'a': 3, 'x': {'y': 'q'}}, {'n': 'al', 'a': 1}, "
    "{'n': 'Cy', 'a': 2, 'x': {'y': 'p'}}, {'n': 'bo', 'a': 3}] %}"
)

# Whole chats in the manner of published ones, written for this test.
CHATS = [
    ("brackets", """{%- if messages and messages[0].role == 'system' -%}
    {%- set preface = messages[0].content ~ '\\n' -%}
    {%- set turns = messages[1:] -%}
{%- else -%}
    {%- set turns = messages -%}
{%- endif -%}
{{ bos_token }}
{%- for turn in turns %}
    {%- if (turn.role == 'user') == (loop.index0 is odd) %}
        {{- raise_exception('turn ' ~ loop.index ~ ' is out of order') }}
    {%- endif %}
    {%- if turn.role == 'user' %}
        {{- '[ASK] ' ~ (preface if loop.first and preface is defined else '') }}
        {{- turn.content | trim ~ ' [/ASK]' }}
    {%- else %}
        {{- ' ' + turn.content.strip() + eos_token }}
    {%- endif %}
{%- endfor %}""", CALLS[:1] + [{"role": "assistant", "content": " Aye \ue000"}, USER], {}),
    ("brackets, out of order", """{% for turn in messages %}
{% if (turn.role == 'user') == (loop.index0 is odd) %}
{{ raise_exception('turn ' ~ loop.index ~ ' is out of order') }}
{% endif %}
{% endfor %}""", [USER, USER], {}),
    ("headers and tools", """{%- macro header(role, end='\\n\\n') -%}
{{ '<|' ~ role ~ '|>' ~ end }}
{%- endmacro -%}
{%- set ns = namespace(last=-1, seen=false) -%}
{%- for m in messages -%}
    {%- if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif -%}
{%- endfor -%}
{{ bos_token }}{{ header('system') }}Today is {{ strftime_now('%d %b %Y') }}.
{% if tools -%}
{{ 'Functions:\\n' }}
{%- for tool in tools %}
{{- tool | tojson(indent=2) | indent(2, first=true) ~ '\\n' }}
{%- endfor %}
{%- endif -%}
{%- for m in messages %}
{{- header(m.role, end='\\n') }}
{%- if m.tool_calls is defined and m.tool_calls %}
    {%- for call in m.tool_calls %}
{{- '{"name": "' + call.function.name + '", "parameters": ' + (call.function.arguments | tojson) + '}' }}
    {%- endfor %}
{%- elif m.content is string %}
{{- m.content }}
{%- else %}
    {%- for part in m.content if part.type == 'text' %}{{ part.text }}{% endfor %}
{%- endif %}
{{- eos_token if loop.index0 != ns.last else '' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ header('assistant') }}{% endif -%}""", CALLS, {"prompt": True, **TOOLS}),
    ("think", """{% for m in messages %}
{% set content = m.content or '' %}
{% if '</think>' in content %}
{% set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
{% set content = content.split('</think>')[-1].lstrip('\\n') %}
[{{ thought }}]
{% endif %}
{{ m.role }}: {{ content }}
{% endfor %}
{% if enable_thinking is defined and enable_thinking is false %}off{% endif %}""",
     [USER, {"role": "assistant", "content": "<think>\nhm\ue000\n</think>\n\nYes\ue000"}],
     {"variables": {"enable_thinking": False}}),
]

CASES = [
    ("namespace", "{% set ns = namespace(a=1, b='x') %}{% for i in [1,2,3] %}{% set ns.a = ns.a + i %}{% set ns.c = i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}[{{ ns.d }}]{{ ns.d is defined }}"),
    ("namespace of a mapping", "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns['b'] }}"),
    ("namespace in a macro", "{% set ns = namespace(n=0) %}{% macro f() %}{% set ns.n = ns.n + 1 %}{% endmacro %}{{ f() }}{{ f() }}{{ ns.n }}"),
    ("attribute of no namespace", "{% set x = 1 %}{% set x.y = 2 %}"),
    ("attribute of an undefined namespace", "{% set x.y = 2 %}"),
    ("macro", "{% macro f(a, b='B', c=a) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ f(1) }}{{ f(1, 2) }}{{ f(1, c=3) }}{{ f(b=2, a=1) }}{{ f() }}{{ f(1, 2, 3,) }}"),
    ("macro of too many arguments", "{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}"),
    ("macro of an unknown argument", "{% macro f(a) %}{% endmacro %}{{ f(b=2) }}"),
    ("macro of an argument twice", "{% macro f(a) %}{% endmacro %}{{ f(1, a=2) }}"),
    ("macro sees what is outermost", "{% set x = 1 %}{% macro f() %}{{ x }}{{ y }}{% endmacro %}{% set x = 2 %}{% for y in [5] %}{{ f() }}{% endfor %}"),
    ("macro keeps its own", "{% macro f(x) %}{% set y = x %}{{ y }}{% endmacro %}{% set y = 9 %}{{ f(1) }}{{ y }}{{ x }}"),
    ("macro with a parameter of an outer name", "{% set a = 1 %}{% macro f(a) %}[{{ a }}]{% endmacro %}{{ f() }}{{ f(2) }}"),
    ("macro that calls another", "{% macro g(x) %}<{{ x }}>{% endmacro %}{% macro f(x) %}{{ g(x) ~ g(x|upper) }}{% endmacro %}{{ f('a') }}"),
    ("macro that calls itself", "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}"),
    ("macro called before it is known", "{{ f() }}{% macro f() %}{% endmacro %}"),
    ("macro that calls a later one", "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}g{% endmacro %}{{ f() }}"),
    ("macro in if", "{% if true %}{% macro f() %}x{% endmacro %}{% endif %}{{ f() }}{{ f is defined }}{{ f is callable }}"),
    ("macro with loops", "{% macro f(l) %}{% for x in l %}{{ x }}{% if not loop.last %},{% endif %}{% else %}none{% endfor %}{% endmacro %}{% for l in [[1,2],[],'ab'] %}{{ loop.index }}{{ f(l) }};{% endfor %}"),
    ("macro's text is text", "{% macro f() %} a {% endmacro %}{{ f()|trim }}{{ f()|length }}{{ f() is string }}{{ f()[1] }}"),
    ("macro in a variable", "{% macro f(x) %}{{ x }}{% endmacro %}{% set g = f %}{{ g(3) }}{% set d = {'f': f} %}{{ d.f(4) }}{{ d['f'](5) }}"),
    ("macro with the user's text", "{% macro f(m) %}<{{ m.content }}>{% endmacro %}{{ f(messages[0]) }}", [USER]),
    ("macro's defaults see variables", "{% set d = 'D' %}{% macro f(a=d, b=[1,2]|join) %}{{ a }}{{ b }}{% endmacro %}{{ f() }}{{ f(none) }}{{ f(nothing) }}"),
    ("set of a block", "{% set x %}a{{ 1 + 1 }}{% for i in [1,2] %}{{ i }}{% endfor %}{% endset %}[{{ x }}]{{ x|length }}"),
    ("set of a block with a filter", "{% set x | upper | replace('A', '-') %}a{{ messages[0].role }}{% endset %}{{ x }}", [USER]),
    ("set of a block keeps its own", "{% set y = 1 %}{% set x %}{% set y = 2 %}{{ y }}{% endset %}{{ x }}{{ y }}"),
    ("set of a block with user text", "{% set x %}<{{ messages[0].content }}>{% endset %}{{ x }}{{ x|upper }}", [USER]),
    ("set of two", "{% set a, b = 1, 'x' %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c }}{{ d }}{% set e, f = 'yz' %}{{ e }}{{ f }}"),
    ("set of two of three", "{% set a, b = [1, 2, 3] %}"),
    ("set to a tuple", "{% set a = 1, 2 %}{{ a }}{{ a[1] }}{{ a|length }}"),
    ("filter block", "{% filter upper %}a{{ 'b' }}{% endfilter %}{% filter trim | replace('a', 'e') %} a {% endfilter %}."),
    ("with", "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% set c = 3 %}{% endwith %}[{{ a }}{{ c }}]{% set x = 1 %}{% with x = 2, y = x %}{{ x }}{{ y }}{% endwith %}{{ x }}"),
    ("with nothing", "{% with %}{% set a = 1 %}{{ a }}{% endwith %}[{{ a }}]"),
    ("generation", "a{% for i in [1,2] %}{% generation %}{{ i }}{% set x = i %}b{% endgeneration %}[{{ x }}]{% endfor %}"),
    ("for over two", "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{{ loop.index }};{% endfor %}"),
    ("for over two in parentheses", "{% for (k, v) in [[1, 2], (3, 4), 'ab'] %}{{ k }}-{{ v }};{% endfor %}"),
    ("for over two with a condition", "{% for k, v in {'a': 1, 'b': 2, 'c': 3}|items if v != 2 %}{{ k }}{{ loop.length }}{% else %}x{% endfor %}"),
    ("for over two of one", "{% for a, b in [[1]] %}{% endfor %}"),
    ("for over a tuple", "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}{% for x in (4, 5) %}{{ x }}{% endfor %}{% for x in () %}{% else %}none{% endfor %}"),
    ("for over a mapping", "{% for k in {'b': 1, 'a': 2} %}{{ k }}{{ loop.last }}{% endfor %}"),
    ("range", "{% for i in range(3) %}{{ i }}{% endfor %}|{% for i in range(2, 5) %}{{ i }}{% endfor %}|{% for i in range(5, 0, -2) %}{{ i }}{% endfor %}|{{ range(3)|length }}{{ range(4)[-1] }}{{ range(3, 1)|list }}{{ 2 in range(3) }}"),
    ("range of nothing", "{{ range() }}"),
    ("range by zero", "{{ range(1, 2, 0) }}"),
    ("range too long", "{{ range(1000000)|length }}"),
    ("loop.cycle", "{% for i in range(5) %}{{ loop.cycle('a', 'b') }}{% endfor %}"),
    ("loop.changed", "{% for i in [1,1,2,2,1] %}{{ loop.changed(i) }} {% endfor %}"),
    ("loop.changed of user text", "{% for m in messages %}{% if loop.changed(m.role, m.content) %}{{ m.role }}{% endif %}{% endfor %}", [USER, USER, {"role": "user", "content": "x"}]),
    ("tuple", "{{ (1, 'a') }} {{ (1,) }} {{ () }} {{ (1) }} {{ (1, 2)[0] }} {{ (1, 2) + (3,) }} {{ (1, 2) * 2 }} {{ 1, 2 }} {{ (1,2)|list }}"),
    ("tuple and list differ", "{{ (1, 2) == [1, 2] }} {{ (1, 2) == (1, 2) }} {{ [1] + [2] == [1, 2] }} {{ 1 in (1, 2) }}"),
    ("tuple plus list", "{{ (1,) + [2] }}"),
    ("mapping", "{% set d = {'a': 1, 'b': [2, 3], 3: 'c', 'a': 4, none: 5, true: 6,} %}{{ d.a }}{{ d['b'][1] }}{{ d[3] }}{{ d[none] }}{{ d[1] }}{{ d|length }}[{{ d.x }}]{{ 'a' in d }}{{ 4 in d }}"),
    ("empty mapping", "{{ {} }}{{ {}|length }}{% if {} %}x{% else %}y{% endif %}"),
    ("mapping of a list key", "{{ {[1]: 2} }}"),
    ("mapping equality", "{{ {'a': 1, 'b': [1, {'c': none}]} == {'b': [1, {'c': none}], 'a': 1} }}{{ {'a': 1} == {'a': 2} }}{{ {'a': 1} == {'b': 1} }}{{ {'a': 1} != {'a': 1, 'b': 2} }}{{ {} == [] }}"),
    ("nested lists equal", "{{ [[1, 'a'], []] == [[1.0, 'a'], []] }}{{ [[1]] == [[2]] }}{{ [[1]] in [[[1]], 2] }}"),
    ("dict()", "{{ dict(a=1, b='x') }}{{ dict({'q': 1}, a=2)|length }}{{ dict()|length }}"),
    ("printed lists", "{{ [1, 'a', 2.5, none, true, ['x'], {'k': (1,)}, nothing] }}"),
    ("printed strings", r"""{{ ['a\'b', 'a"b', 'a\'"b', 'tab\t nl\n cr\r \\ \x00 \x1f \x7f', 'é東🦈', '\u200b\u00a0\u00ad\ue000\U000e0001\u2028\ufeff'] }}"""),
    ("printed messages", "{{ messages }}{{ messages[0] }}", CALLS),
    ("printed tools", "{{ tools }}", CALLS, TOOLS),
    ("power", "{{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2.0 ** 3 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ 2 * 3 ** 2 }} {{ 0 ** 0 }} {{ 10 ** 18 }}"),
    ("power of zero", "{{ 0 ** -1 }}"),
    ("chained comparison", "{{ 1 < 2 < 3 }}{{ 1 < 3 < 2 }}{{ 3 > 2 >= 2 != 1 }}{{ 1 == 1 in [1] }}{{ 1 < 0 < nobody.x }}{{ 'b' not in 'abc' == true }}"),
    ("order of lists", "{{ [1, 2] < [1, 3] }}{{ [1] < [1, 0] }}{{ (2,) > (1, 9) }}{{ ['a'] <= ['a'] }}"),
    ("order of unlike", "{{ [1] < 1 }}"),
    ("strings side by side", "{{ 'a' 'b' \"c\" }}"),
    ("call of a string", "{{ 'a'() }}"),
    ("call of none", "{% set x = none %}{{ x() }}"),
    ("call of a message", "{{ messages[0]() }}", [USER]),
    ("method of a mapping", "{% set d = {'a': 1, 'b': 2} %}{% for k in d.keys() %}{{ k }}{% endfor %}{% for v in d.values() %}{{ v }}{% endfor %}{{ d.get('a') }}{{ d.get('x') }}{{ d.get('x', 7) }}{{ 'a' in d.keys() }}{{ d.items()|list }}{{ d.keys()|join(',') }}{{ d.values()|list|length }}"),
    ("view has no places", "[{{ {'a': 1}.keys()[0] }}][{{ {'a': 1}.items()[0] }}]{{ {'a': 1}.keys()|first }}{{ {'a': 1}.values()|length }}"),
    ("view is true by length", "{{ 'y' if {}.items() else 'n' }}{{ 'y' if {'a': 1}.items() else 'n' }}{{ {}.keys() is iterable }}{{ {}.keys() is sequence }}"),
    ("tojson of a view", "{{ {'a': 1}.keys()|tojson }}"),
    ("method of a message", "{{ messages[0].get('content') }}{{ messages[0].get('name', 'anon') }}{{ messages[1].tool_calls[0].function.arguments.items()|list }}", CALLS),
    ("method as an attribute", "{{ tools[0].function.parameters.properties.depth.items is defined }}{{ tools[0].function.parameters.properties['keys'].type }}{{ tools[0].function.parameters.properties.depth['items'] }}{{ {}['items'] is defined }}{{ {}.items is callable }}", CALLS, TOOLS),
    ("method of a list", "{{ [1, 2, 1].count(1) }}{{ [1, 2].index(2) }}"),
    ("method that changes", "{{ [1].append(2) }}"),
    ("method that changes a mapping", "{{ {}.update({}) }}"),
    ("method not reached", "{% if false %}{{ [1].append(2) }}{% endif %}ok"),
    ("index of what is not there", "{{ [1].index(2) }}"),
    ("method split", "{{ ' a  b c '.split() }}{{ 'a,b,,c'.split(',') }}{{ 'a,b,c'.split(',', 1) }}{{ ''.split(',') }}{{ ''.split() }}{{ 'abc'.split('b')[-1] }}{{ ' a b  c d '.split(none, 2) }}{{ 'a-b-c'.split(sep='-', maxsplit=1) }}{{ 'a<>b'.split('<>') }}"),
    ("method rsplit", "{{ 'a,b,c'.rsplit(',', 1) }}{{ 'a,b,c'.rsplit(',') }}{{ 'abc'.rsplit('x', 1) }}{{ 'a--b---c'.rsplit('--', 2) }}"),
    ("method split by nothing", "{{ 'a'.split('') }}"),
    ("method splitlines", "{{ 'a\\nb\\r\\nc\\rd\\n\\ne'.splitlines() }}{{ ''.splitlines() }}{{ 'a\\x0bb\\x0cc\\x1cd\\u0085e\\u2028f\\n'.splitlines() }}"),
    ("method replace", "{{ 'aXbX'.replace('X', '-') }}{{ 'aXbX'.replace('X', '', 1) }}{{ 'ab'.replace('', '.') }}{{ 'ab'.replace('', '.', 2) }}{{ 'aaa'.replace('aa', 'b') }}{{ ''.replace('', 'x') }}{{ 'é東'.replace('', '-') }}"),
    ("method replace of user text", "{{ messages[0].content.replace('me', 'you') }}{{ 'a@b'.replace('@', messages[0].content) }}", [USER]),
    ("method join", "{{ ', '.join(['a', 'b']) }}{{ ''.join('abc') }}{{ '-'.join([]) }}"),
    ("method join of numbers", "{{ ', '.join([1]) }}"),
    ("method title", "{{ \"it's a new-day x2y\".title() }}{{ 'ǆ ß éA'.title() }}{{ 'hELLO wORLD'.capitalize() }}{{ 'ÉCOLE'.capitalize() }}{{ ''.capitalize() }}"),
    ("method find", "{{ 'abcabc'.find('c') }}{{ 'é東x'.find('x') }}{{ 'a'.find('z') }}{{ 'abab'.count('ab') }}{{ 'aaa'.count('aa') }}{{ 'ab'.count('') }}"),
    ("method affixes", "{{ 'abc'.startswith(('x', 'a')) }}{{ 'abc'.endswith(('x', 'y')) }}{{ 'abc'.removeprefix('a') }}{{ 'abc'.removesuffix('x') }}{{ 'abc'.removesuffix('bc') }}"),
    ("method isdigit", "{{ '12'.isdigit() }}{{ ''.isdigit() }}{{ '1a'.isdigit() }}"),
    ("case beyond ASCII", "{{ 'straße ÀÉ ŉ ﬁ ΑΣ ΑΣΑ Σ ǆ İ ꭰ Ⴀ'|upper }}|{{ 'STRASSE ÀÉ ΑΣ ΑΣΑ Σ ΑΣ. Ǆ İ Ა 𐐀'|lower }}|{{ 'é'.upper() }}{{ 'É'.lower() }}"),
    ("filter capitalize title", "{{ 'hELLO wORLD'|capitalize }}{{ \"they're bill's (a) x-y [q] <w> {e}\"|title }}{{ 'ßa ǆx'|title }}{{ none|title }}"),
    ("filter replace", "{{ 'banana'|replace('a', 'o') }}{{ 'banana'|replace('a', 'o', 2) }}{{ 123|replace(2, 'x') }}{{ 'ab'|replace('', '-') }}{{ 'a'|replace(old='a', new='b') }}"),
    ("filter list", "{{ 'abc'|list }}{{ {'a': 1}|list }}{{ (1, 2)|list }}{{ nothing|list }}"),
    ("filter items", "{% for k, v in {'a': 1}|items %}{{ k }}{{ v }}{% endfor %}{{ {'a': 1}|items|list }}{{ nothing|items|list }}"),
    ("filter items of a list", "{{ [1]|items|list }}"),
    ("filter dictsort", "{{ {'b': 1, 'A': 3, 'c': 2}|dictsort }}{{ {'b': 1, 'A': 3}|dictsort(true) }}{{ {'b': 1, 'A': 3, 'c': 2}|dictsort(by='value', reverse=true) }}{{ {'b': 1, 'A': 3}|dictsort(false, 'value') }}"),
    ("filter dictsort by what", "{{ {}|dictsort(by='x') }}"),
    ("filter sort", PEOPLE + "{{ [3, 1, 2]|sort }}{{ ['b', 'A', 'c']|sort }}{{ ['b', 'A', 'c']|sort(case_sensitive=true) }}{{ [1, 3, 2]|sort(reverse=true) }}{{ people|sort(attribute='a')|map(attribute='n')|list }}{{ people|sort(attribute='n')|map(attribute='a')|list }}{{ 'bca'|sort }}{{ people|sort(true, attribute='a')|map(attribute='n')|join }}"),
    ("filter sort of unlike", "{{ [1, 'a']|sort }}"),
    ("filter unique", PEOPLE + "{{ [1, 2, 1, 3, 2]|unique|list }}{{ ['a', 'A', 'b']|unique|list }}{{ ['a', 'A']|unique(true)|list }}{{ people|unique(attribute='n')|map(attribute='n')|list }}"),
    ("filter reverse", "{{ [1, 2, 3]|reverse|list }}{{ 'abc'|reverse }}{% for x in (1, 2)|reverse %}{{ x }}{% endfor %}{{ 'é東'|reverse }}"),
    ("filter sum min max", PEOPLE + "{{ [1, 2.5]|sum }}{{ []|sum }}{{ [1]|sum(start=10) }}{{ people|sum('a') }}{{ people|sum(attribute='a') }}{{ [3, 1, 2]|min }}{{ ['b', 'A']|max }}[{{ []|min }}]{{ (people|max(attribute='a')).n }}{{ ['b', 'A']|min(true) }}"),
    ("filter sum of strings", "{{ ['a']|sum }}"),
    ("filter map", PEOPLE + "{{ people|map(attribute='n')|join(',') }}{{ ['a', 'b']|map('upper')|list }}{{ people|map(attribute='x.y', default='-')|list }}{{ [[1, 2], [3]]|map(attribute=0)|list }}{{ [[1, 2]]|map('join', '-')|list }}{{ [' a ']|map('trim')|list }}{{ ['a']|map('replace', 'a', 'b')|first }}{{ none|map('upper')|list }}{{ [[1]]|map('length')|list }}"),
    ("filter map of an unknown filter", "{{ [1]|map('frobnicate')|list }}"),
    ("filter map of missing attributes", "[{{ [{}, {'a': 1}]|map(attribute='a')|join(',') }}]{{ [{}]|map(attribute='a')|list|first is defined }}"),
    ("filter select", "{{ [1, 2, 3, 4]|select('odd')|list }}{{ [1, 2, 3, 4]|reject('odd')|list }}{{ [0, 1, '', 'a']|select|list }}{{ [0, 1, '']|reject|list }}{{ [1, 5]|select('gt', 3)|list }}{{ [1, 5]|select('>', 3)|list }}{{ ['a', none]|reject('none')|list }}{{ [1, 2]|select('in', [2])|list }}{{ none|select|list }}"),
    ("filter selectattr", PEOPLE + "{{ people|selectattr('a', 'equalto', 3)|map(attribute='n')|list }}{{ people|rejectattr('a', 'gt', 1)|map(attribute='n')|list }}{{ people|selectattr('x')|list|length }}{{ people|selectattr('x', 'defined')|list|length }}{{ people|rejectattr('x.y', '==', 'q')|list|length }}"),
    ("filter selectattr of messages", "{{ messages|selectattr('role', 'equalto', 'user')|map(attribute='content')|first }}{{ (messages|rejectattr('role', 'in', ['user', 'tool'])|list)[0].role }}", [USER, {"role": "tool", "content": "t"}, {"role": "system", "content": "s"}]),
    ("filter select of an unknown test", "{{ [1]|select('frobnicate')|list }}"),
    ("a generator is true", "{% set g = []|selectattr('x') %}{% if g %}yes{% endif %}{{ g|list }}"),
    ("a generator ends", "{% set g = [1, 2, 3]|map('string') %}{{ g|first }}{{ g|list }}{{ g|list }}{% for x in g %}x{% else %}none{% endfor %}"),
    ("a generator is looked through once", "{% set g = [1, 2, 3]|select %}{{ 2 in g }}{{ g|list }}"),
    ("tojson of a generator", "{{ [1]|map('string')|tojson }}"),
    ("length of a generator", "{{ [1]|select|length }}"),
    ("last of a generator", "{{ [1]|select|last }}"),
    ("item of a generator", "[{{ ([1]|select)[0] }}]{{ [1]|select is iterable }}{{ [1]|select is sequence }}"),
    ("filter int", "{{ '42'|int }} {{ ' 7 '|int }} {{ 'x'|int }} {{ 'x'|int(5) }} {{ 3.9|int }} {{ -3.9|int }} {{ '3.7'|int }} {{ true|int }} {{ none|int }} {{ 'ff'|int(base=16) }} {{ ''|int }} {{ [1]|int(-1) }} {{ '1e3'|int }}"),
    ("filter float", "{{ '4.5'|float }} {{ 3|float }} {{ 'x'|float }} {{ 'x'|float(2.5) }} {{ true|float }} {{ ' 1e3 '|float }} {{ none|float }}"),
    ("filter abs", "{{ -3|abs }}{{ (-3)|abs }}{{ (-2.5)|abs }}{{ 3|abs }}"),
    ("filter abs of text", "{{ 'a'|abs }}"),
    ("filter round", "{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 7|round }} {{ 2.1|round(method='ceil') }} {{ 2.19|round(1, 'floor') }} {{ -2.5|round }} {{ 1234.5678|round(3) }} {{ 42.55|round(1) }} {{ 5|round(0, 'ceil') }}"),
    ("filter round by what", "{{ 1.5|round(0, 'x') }}"),
    ("filter indent", "{{ 'a\\nb\\n\\nc'|indent }}|{{ 'a\\nb'|indent(2, true) }}|{{ 'a\\n\\nb'|indent(width=1, blank=true) }}|{{ 'a\\nb'|indent('> ') }}|{{ ''|indent }}|{{ 'a\\n'|indent(2) }}"),
    ("filter tojson with indent", "{{ {'a': [1, {'b': []}], 'c': {}}|tojson(indent=2) }}{{ [1]|tojson(indent=4) }}{{ []|tojson(2) }}{{ tools|tojson(indent=0) }}", CALLS, TOOLS),
    ("filter tojson options", "{{ {'b': 'é🦈\\x7f', 'a': [1, 2]}|tojson(ensure_ascii=true) }}{{ {'b': 1, 'a': {'d': 1, 'c': 2}}|tojson(sort_keys=true) }}{{ {'b': 1, 'a': [1, 2]}|tojson(separators=(',', ':')) }}{{ {'b': [1]}|tojson(separators=(', ', '= '), indent=1) }}"),
    ("filter tojson of keys", "{{ {1: 2, none: 3, true: 4, 2.5: 5}|tojson }}{{ (1, 'a')|tojson }}"),
    ("filter tojson of tools", "{{ tools|tojson }}{{ tools[0].function.parameters.x|tojson }}{{ messages|tojson }}", CALLS, TOOLS),
    ("filter safe", "{{ '<a>'|safe }}{{ '<a>'|safe + '<b>' }}{{ '\"q\"' + '&'|safe }}{{ '<' ~ '>'|safe }}{{ ('<'|safe)|upper + '<' }}{{ '<'|e }}{{ '\\'\"'|escape }}{{ 5|safe }}"),
    ("filter safe with user text", "{{ '<a>'|safe + messages[0].content + '<b>' }}{{ messages[0].content|e }}", [{"role": "user", "content": "\ue000<&>"}]),
    ("filter join by attribute", PEOPLE + "{{ people|join(', ', attribute='n') }}"),
    ("filter default with names out of order", "{{ ''|default(boolean=true, default_value='d') }}{{ x|default(boolean=true) }}."),
    ("filter first last of mappings", "{{ {'a': 1, 'b': 2}|first }}{{ {'a': 1, 'b': 2}|last }}"),
    ("tests of order", "{{ 1 is lt 2 }}{{ 1 is gt(2) }}{{ 2 is ge 2 }}{{ 2 is le 1 }}{{ 1 is lessthan 2 }}{{ 1 is greaterthan 2 }}{{ 'a' is eq 'a' }}{{ 'a' is ne 'a' }}"),
    ("tests of kinds", "{% for x in [1, 1.5, 'a', none, true, [], (), {}, nothing] %}{{ x is mapping }}{{ x is iterable }}{{ x is sequence }}{{ x is string }}{{ x is number }}{{ x is integer }}{{ x is float }}{{ x is boolean }}{{ x is callable }};{% endfor %}"),
    ("tests of case", "{{ 'abc' is lower }}{{ 'aBc' is lower }}{{ 'ABC' is upper }}{{ '1' is upper }}{{ 'A1' is upper }}{{ '' is lower }}"),
    ("test sameas", "{{ none is sameas none }}{{ true is sameas true }}{{ 1 is sameas true }}{{ false is sameas(false) }}"),
    ("functions are defined", "{{ namespace is defined }}{{ range is defined }}{{ strftime_now is defined }}{{ raise_exception is callable }}{{ joiner2 is defined }}"),
    ("functions are hidden by variables", "{% set range = 5 %}{{ range }}"),
    ("strftime_now", "{{ strftime_now('%Y-%m-%d') }} {{ strftime_now('%d %b %Y') }} {{ strftime_now('%A %B %j %H:%M:%S %p %%') }}[{{ strftime_now('') }}]"),
    ("strftime_now in a variable", "{% if not date is defined %}{% if strftime_now is defined %}{% set date = strftime_now('%d %b %Y') %}{% endif %}{% endif %}{{ date }}"),
    ("tools not given", "{{ tools is defined }}{{ tools is none }}{{ documents is none }}{% if tools %}x{% endif %}{% for t in tools or [] %}{% endfor %}"),
    ("tools given", "{% for tool in tools %}{% set f = tool.function %}{{ f.name }}: {{ f.description }}{% for n, p in f.parameters.properties.items() %}({{ n }}: {{ p.type }}{{ '?' if n not in f.parameters.required }}){% endfor %}{% endfor %}", CALLS, TOOLS),
    ("documents given", "{% for d in documents %}[{{ loop.index0 }}] {{ d.title }}: {{ d['text'] }}{% endfor %}", [USER], {"documents": [{"title": "T\ue000", "text": "x"}]}),
    ("variables given", "{{ enable_thinking }}{{ deep.er[1] }}{{ nothing is defined }}{% set enable_thinking = 1 %}{{ enable_thinking }}", [USER], {"variables": {"enable_thinking": False, "deep": {"er": [1, "two\ue000"]}}}),
    ("parts of a message", "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% elif m.content is iterable and m.content is not none %}{% for p in m.content %}{{ p.text if p.type == 'text' else '<' ~ p['type'] ~ '>' }}{% endfor %}{% else %}none{% endif %}{% endfor %}", CALLS),
    ("calls of a message", "{% for m in messages if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function.name }}({% for k, v in c.function.arguments|items %}{{ k }}={{ v|tojson }}{% endfor %}){% endfor %}{% endfor %}", CALLS),
    ("loop of a loop in a macro", "{% macro f(xs) %}{% for x in xs %}{% if x is string %}{{ x }}{% else %}{{ f(x) }}{% endif %}{% endfor %}{% endmacro %}{{ f(['a', ['b', ['c']], 'd']) }}"),
    ("break in a macro", "{% macro f(xs) %}{% for x in xs %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}.{% endmacro %}{% for i in [1, 2] %}{{ f([1, 2, 3]) }}{% if i == 1 %}{% continue %}{% endif %}!{% endfor %}"),
    ("set in a loop in if", "{% for x in [1, 2] %}{% if x == 1 %}{% set y %}{{ x }}!{% endset %}{% endif %}[{{ y }}]{% endfor %}"),
    ("inline if is undefined", "{{ 'a' if false }}{{ ('a' if false) is defined }}{{ ('b' if true) ~ 'c' }}"),
    ("not not", "{{ not not 1 }}{{ not 1 == 2 }}{{ not 1 in [1] }}{{ not nothing }}"),
    ("whitespace in tags of all kinds", "  {%- macro f( a , b = 1 ) -%}  {{- a -}}  {%- endmacro -%}  x  {{- f( 1 , b = 2 ) -}}  y\n  {% set x = 1 %}\n  {% set y %}\n  z\n  {% endset %}\n{{ y }}"),
    ("in a mapping by a list", "{{ [1] in {} }}"),
    ("filter unique of lists", "{{ [[1]]|unique|list }}"),
    ("filter int of undefined", "{{ nothing|int }}"),
    ("filter float of undefined", "{{ nothing|float }}"),
    ("slice of a mapping", "{{ messages[0][1:] }}", [USER]),
    ("filter sort of equal undefined", "{{ [{'b': 1}, {'b': 2}]|sort(attribute='a') }}{{ [none, none]|sort }}"),
    ("printed markup", "{{ ['<a b>'|safe] }}{{ ('<a b>'|safe).split() }}{{ {'k': 'x'|safe}|tojson }}"),
    ("times a boolean", "{{ 'ab' * true }}{{ [1] * true }}[{{ false * 'x' }}]"),
    ("self", "[{{ self.nothing }}]{{ self is defined }}"),
    ("list times", "{{ [1, 2] * 2 }}{{ 2 * [3] }}{{ [1] * 0 }}"),
    ("comment in between", "{% if true %}{# a #}\n  {# b #}x{% endif %}"),
]
CASES += [(f"chat: {name}", template, messages, fields) for name, template, messages, fields in CHATS]
