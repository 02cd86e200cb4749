"""Templates to compare with jinja2's: expressions and statements by hand, and others made up at random."""

from __future__ import annotations

import random

VARIABLES = {
    "messages": [
        {"role": "user", "content": "hi é", "a": [1, 2.0, None]},
        {"role": "assistant", "content": "it's <b>", "x": True},
        {"role": "user", "content": " q \n", "items": 3},
    ],
    "tools": [{"name": "f", "p": {"b": 1, "a": 1e16}}],
    "d": {"a": 1, "b": "x", "items": 5},
    "x": "X y",
    "b": 7,
    "tup": (1, "a"),
    "big": 10**20,
    "nested": {"a": [{"b": 1.0}], "c": None, "t": True, "e": {}},
}

# One a line, each worth a look: how values are printed, what Python's and jinja2's operations do at their edges.
EXPRESSIONS = r"""
1.0
1e16
1e-5 ~ 1/3 ~ -0.0
7 // -2 ~ 7 % -3 ~ -5.5 % 2
2 ** 70 ~ 2 ** -1
[1, 'a', none, true, 1.5, {'b': [false]}, ('c',), "it's", 'é\n\t\x00']
nested ~ tup ~ big ~ [big]
nested | tojson
nested | tojson(indent=2)
{'b': 1.0, 'a': 'é<>&\''} | tojson(sort_keys=true, separators=(',', ':'), ensure_ascii=true)
[] | tojson(indent=2) ~ {} | tojson
undefinedx | tojson
d.items() | list ~ d.keys() | list ~ d.values() | list
d.items
d['items'] ~ d['get']('zz', 5) ~ d.get('zz')
d.missing ~ d['missing'] ~ none.x ~ (5).x ~ 'a'['b'] ~ [1][5] ~ [1, 2][-1]
d.missing.x
undefinedx.y
undefinedx + 'a'
undefinedx ~ 'a' ~ undefinedx | length ~ (undefinedx == none) ~ (undefinedx in [1])
messages[0].role.upper() ~ messages[-1]['role'] ~ messages[1:] | length ~ messages[::-1][0].content
messages | map(attribute='role') | join(',')
messages | selectattr('role', 'equalto', 'user') | list | length
messages | rejectattr('x', 'defined') | map(attribute='content') | list
messages | groupby('role')
messages | groupby('role') | map(attribute='grouper') | list
(messages | groupby('role'))[0].list | length
[{'a': 1}, {}] | map(attribute='a') | list
[{'a': 1}, {}] | map(attribute='a', default=7) | list
[3, 1, 2] | sort(reverse=true) ~ ['b', 'A', 'c'] | sort ~ ['b', 'A', 'c'] | sort(case_sensitive=true)
[1, 'a'] | sort
['a', 'A', 'b'] | unique | list ~ [[1, 2], [3]] | sum(start=[])
[1, 2, 3] | batch(2) | list ~ [1, 2, 3] | slice(2) | list ~ {'b': 1, 'a': 2} | dictsort
[1, none, true, 1.0] | join(',') ~ 'abc' | list ~ 'abc' | reverse ~ {'a': 1} | first
[] | first ~ [] | max ~ 'abc' | last ~ ['b', 'A'] | min
'a b' | capitalize ~ "they're bill's" | title ~ "they're".title() ~ 'hello world' | truncate(7)
'hello world foo' | wordwrap(5) ~ 'a\n\nb' | indent(2, true) ~ 'a' | center(5) ~ 'x y' | wordcount
('<a>' | safe) + '<' ~ ('<a>' | escape) ~ ('<a>' | safe | tojson) ~ ('<a>' | e).upper()
'a b&é/' | urlencode ~ '<b>x</b> y' | striptags ~ 1234567 | filesizeformat ~ {'a': 1, 'b': none} | xmlattr
'abc' | int ~ '5.7' | int ~ '0x1f' | int(16) ~ 2.5 | round ~ 2.567 | round(2) ~ '1e3' | float
'' | default('y') ~ none | default('y') ~ '' | default('y', true) ~ undefinedx | d('z')
'%s %d %05.2f %(a)s' % ('a', 2, 3.14159)
'%s %d' % ('a', 2) ~ '%5s|' | format('a') ~ '{} {!r} {a.b} {c[0]:>3}'.format('a', 'b', a={'b': 1}, c=[2])
'{0.__class__}'.format(1)
'a\x1c'.strip() | length ~ 'a\x85b\rc\x0bd'.splitlines() ~ 'ß'.upper() ~ 'ǆ'.title() ~ 'İ'.lower() | length
''.isdigit() ~ 'a b'.islower() ~ 'x'.zfill(3)
'abc'.partition('b') ~ 'a b c'.rsplit(' ', 1) ~ 'abc'.removeprefix('a')
'a,b,,c'.split(',') ~ ' a  b '.split() ~ 'a.b.c'.split('.', maxsplit=1) ~ 'abc'.startswith(('a', 'b')) ~ 'abc'.count('')
'a'.join(['x', 1])
'abc'.index('z')
1 < 'a'
1 in 'abc'
'a' is sequence ~ {} is sequence ~ {} is mapping ~ true is number ~ 1.0 is integer
range is callable ~ d.items is callable
1 is sameas true ~ 2 is divisibleby 2 ~ 'a' is in 'abc' ~ undefinedx is defined ~ d.a.b is defined ~ 'tojson' is filter
d.__class__ ~ ''.__class__ ~ (d.update is defined) ~ messages.append
d.update({'a': 2})
messages.append(1)
''.__class__.__mro__
range(3) ~ range(5, 0, -2) | list ~ dict(d, z=1) ~ dict([('a', 1)]) ~ dict.fromkeys('ab')
range(10 ** 6)
namespace(a=1) ~ namespace(a=1).a ~ namespace({'b': 2}).b ~ namespace().zz
namespace(_a=1)
(1 if false) ~ ((1 if false) is defined) ~ (1 if true else 2)
1 < 2 < 3 ~ (1 < 2 < 2) ~ (3 > 2 == 2) ~ (1 not in [2]) ~ (not 1 == 2)
0 or 'x' ~ (1 and 2) ~ ('' or none) ~ ([] and 1)
'a' 'b' ~ 1_000 ~ 0x1f ~ "\q" ~ '\u00e9\x41\101'
cycler('a', 'b').next() ~ joiner(',')()
d.copy() ~ [1, 2].index(2) ~ [1, 2].copy() ~ (1, 2).count(1) ~ 'a-b'.translate({45: '+'})
1 / 0
x.y.z
nothing(1)
d(1)
1 | nothing
raise_exception('no: ' ~ d)
strftime_now('%Y-%m-%d %H:%M') | length
f(*[1, 2], **{'a': 3})
'urlize' is filter ~ lipsum is defined ~ 'nothing' is filter
""".strip().split("\n")

STATEMENTS = [
    # Scopes: what a loop sets stays in it; what is set later in a block is undefined in it before.
    "{% for m in messages %}{{ y }}{% set y = m.role %}{{ y }}{% endfor %}{{ y }}",
    "{% for m in messages %}{{ tools }}{% endfor %}{% set tools = 1 %}{{ tools }}",
    "{% macro f() %}{{ tools }}{% endmacro %}{{ f() }}{% set tools = 1 %}{{ f() }}",
    "{% if d.zz %}{% set tools = 1 %}{% endif %}{{ tools }}{% if d.a %}{% set tools = 2 %}{% endif %}{{ tools }}",
    "{% set n = namespace(a=0, s='') %}{% for m in messages %}{% set n.a = n.a + loop.index %}"
    "{% endfor %}{{ n.a }}{{ n }}",
    "{% set n = 1 %}{% set n.a = 2 %}",
    "{% with a = 1, b = x %}{{ a }}{{ b }}{% set x = 2 %}{{ x }}{% endwith %}{{ x }}{{ a }}",
    "{% for x in [1, 2] %}{% for x in [x, x * 2] %}{{ x }}{% endfor %}{{ x }}{% endfor %}{{ x }}",
    "{% for k, v in d.items() %}{{ k }}={{ v }}{{ ', ' if not loop.last }}{% endfor %}",
    "{% for a, b in [[1, 2], 'xy', [1]] %}{{ a }}{{ b }}{% endfor %}",
    # Loops.
    "{% for m in messages %}{{ loop.index }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex0 }}"
    "{{ loop.previtem.role }}{{ loop.nextitem.role }}{{ loop.cycle('a', 'b') }}{{ loop.changed(m.role) }}{% endfor %}",
    "{% for m in messages if m.role == 'user' %}{{ loop.index }}{{ m.content }}{% else %}none{% endfor %}",
    "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% elif i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in [1] %}{% break %}{% else %}as jinja2 has it{% endfor %}{% for i in [] %}{% else %}empty{% endfor %}",
    "{% for i in [1, 2] %}{% for j in [] %}{% else %}{% break %}{% endfor %}{{ i }}{% endfor %}",
    "{% for t in [{'n': 1, 'c': [{'n': 2, 'c': []}]}] recursive %}{{ t.n }}{{ loop.depth }}{{ loop(t.c) }}{% endfor %}",
    "{% for m in undefinedx %}{{ m }}{% endfor %}{% for c in 'ab' %}{{ c }}{% endfor %}"
    "{% for k in d %}{{ k }}{% endfor %}",
    "{% for m in none %}{% endfor %}",
    "{% for loop in [1] %}{{ loop }}{% endfor %}",
    # Macros, calls, captured blocks.
    "{% macro f(a, b=a, c='-') %}[{{ a }}{{ b }}{{ c }}{{ varargs }}{{ kwargs }}]{% endmacro %}"
    "{{ f(1) }}{{ f(1, c=2) }}{{ f(1, 2, 3, 4, z=5) }}{{ f() }}{{ f }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}",
    "{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(9) }}",
    "{% macro f() %}<{{ caller('x') }}>{% endmacro %}{% call(v) f() %}{{ v }}{{ x }}{% endcall %}{{ f() }}",
    "{% set t %} a {{ x }}{% set z = 1 %}{% endset %}[{{ t }}]{{ z }}{% set t | trim | upper %} b {% endset %}{{ t }}",
    "{% filter upper | trim %} a {{ x }}{% set z = 1 %} {% endfilter %}{{ z }}",
    "{% generation %}a{{ x }}{% set y = 1 %}{% endgeneration %}{{ y }}",
    "{% for m in messages %}{% generation %}{{ loop.index }}{{ m.role }}{% endgeneration %}{% endfor %}",
    # White space and comments.
    "  {% if true %}\n  a\n  {%- endif %}\n\n  {{- 'b' }}\n  {%+ if true %}c{% endif +%}\n"
    "{# d #}\n  e {{ 'f' -}}  \n g\n",
    "{% raw %}{{ x }}{% if %}{% endraw %}{# {{ x }} #}\r\nb\rc\n\n",
    "\n{%- set a = 1 -%}\n\n{{ a }}\t{%- if a %}\n\t\tb\n\t{% endif %}\n",
    # What is refused.
    "{% include 'a' %}",
    "{% extends 'a' %}",
    "{% import 'a' as b %}",
    "{% from 'a' import b %}",
    "{% block a %}x{% endblock %}",
    "{% do x %}",
    "{% break %}",
    "{% macro f() %}{% break %}{% endmacro %}{{ f() }}",
    "{% if %}",
    "{{ x",
    "{% for %}",
    "{{ 'a }}",
]

_NAMES = ["a", "b", "messages", "tools", "x", "y", "ns", "loop", "m", "d", "zz", "nested"]
_CONSTANTS = ["'a'", "'b c'", "''", "'é<>&'", "' x\\n'", '"it\'s"', "'1'", "none", "true", "false", "1.5", "[]", "{}"]
_FIELDS = [
    "role",
    "content",
    "a",
    "x",
    "items",
    "get",
    "upper",
    "index",
    "first",
    "last",
    "list",
    "zz",
    "_p",
    "__class__",
]
_KEYS = ["0", "-1", "'role'", "'content'", "'items'", "x"]
_TESTS = [
    *("defined", "undefined", "none", "string", "mapping", "iterable", "sequence"),
    *("number", "true", "boolean", "integer", "odd", "callable", "lower"),
]
_FILTERS = [
    "length",
    "upper",
    "trim",
    "tojson",
    "tojson(indent=2)",
    "list",
    "join(',')",
    "first",
    "last",
    "string",
    "int",
    "float",
    "default('q')",
    "map('upper')|list",
    "map(attribute='role')|list",
    "selectattr('role')|list",
    "rejectattr('a')|list",
    "select('string')|list",
    "sort",
    "unique|list",
    "items|list",
    "dictsort",
    "reverse|list",
    "replace('a','b')",
    "indent(2,true)",
    "batch(2)|list",
    "slice(2)|list",
    "sum",
    "min",
    "max",
    "round",
    "abs",
    "capitalize",
    "title",
    "safe",
    "escape",
    "wordcount",
    "groupby('role')",
    "center(9)",
    "truncate(3)",
    "urlencode",
    "striptags",
    "pprint",
    "count",
    "tojson(sort_keys=true)",
    "map('tojson')|join",
    "selectattr('role','equalto','user')|list",
    "map(attribute='x',default=1)|list",
]
_CALLS = [
    "upper()",
    "strip()",
    "split()",
    "items()",
    "keys()|list",
    "values()|list",
    "title()",
    "splitlines()",
    "rstrip()",
    "lower()",
    "isdigit()",
]


class MadeUp:
    """A template that the seed alone makes; about a third of them mean something."""

    def __init__(self, seed: int):
        self._random = random.Random(seed)
        head = self._pick("{% set ns = namespace(a=1) %}", "{% set ns = namespace(a=x) %}", "")
        macro = self._pick("{% macro f(p, q=1) %}[{{ p }}{{ q }}]{% endmacro %}", "")
        self.source = head + macro + self._block(3, False)

    def _pick(self, *among: str) -> str:
        return self._random.choice(among)

    def _value(self, depth: int) -> str:
        if depth <= 0:
            return self._pick(self._pick(*_NAMES), self._pick(*_CONSTANTS), str(self._random.randint(-3, 12)))
        value = lambda: self._value(depth - self._random.randint(1, 2))
        forms = [
            lambda: f"({value()} {self._pick(*'+-*/%~', '//')} {value()})",
            lambda: f"({value()} {self._pick('==', '!=', '<', '>=', 'in', 'not in', 'and', 'or')} {value()})",
            lambda: f"({value()} if {value()} else {value()})",
            lambda: f"({value()} if {value()})",
            lambda: f"{value()}.{self._pick(*_FIELDS)}",
            lambda: f"{value()}[{self._pick(*_KEYS)}]",
            lambda: f"messages[{self._pick('1:', ':2', '::-1', '0')}]",
            lambda: f"{value()}|{self._pick(*_FILTERS)}",
            lambda: f"{value()}|{self._pick(*_FILTERS)}",
            lambda: f"({value()} is {self._pick('', 'not ')}{self._pick(*_TESTS)})",
            lambda: f"[{value()}, {value()}]",
            lambda: f"{{{self._pick(*_CONSTANTS)}: {value()}}}",
            lambda: f"{value()}.{self._pick(*_CALLS)}",
            lambda: f"{value()}.{self._pick('get', 'startswith', 'split', 'join', 'count')}({value()})",
            lambda: f"loop.{self._pick('index', 'first', 'last', 'length', 'previtem', 'nextitem', 'changed(x)')}",
            lambda: f"f({value()}{self._pick('', ', q=1', ', 2', ', z=1')})",
            lambda: self._pick("range(3)", "not x", "-b", f"dict(a={value()})"),
            lambda: self._pick(*_NAMES),
        ]
        return self._random.choice(forms)()

    def _tag(self, text: str) -> str:
        return f"{{%{self._pick('', '', '-', '+')} {text} {self._pick('', '', '-', '+')}%}}"

    def _block(self, depth: int, loop: bool) -> str:
        return "".join(self._statement(depth, loop) for _ in range(self._random.randint(1, 3)))

    def _statement(self, depth: int, loop: bool) -> str:
        value = lambda: self._value(self._random.randint(0, 2))
        block = lambda inside=loop: self._block(depth - 1, inside)
        text = ["T", "\n", "  ", " t \n", "\n\n  ", "{# c #}", "{#- c\n -#}", "\t\n", "{% raw %} {{ x }} {% endraw %}"]
        plain = [
            lambda: self._pick(*text),
            lambda: f"{self._pick('{{ ', '{{- ')}{self._value(self._random.randint(0, 3))}{self._pick(' }}', ' -}}')}",
        ]
        forms = [
            *plain,
            *plain,
            lambda: self._tag(f"set {self._pick('a', 'b', 'x', 'y', 'messages', 'tools')} = {value()}"),
            lambda: self._tag(f"set ns.{self._pick('a', 'x', '_q')} = {value()}"),
            lambda: self._tag(f"if {value()}") + block() + self._tag("endif"),
            lambda: self._tag(f"if {value()}") + block() + self._tag("else") + block() + self._tag("endif"),
            lambda: self._for(value(), block(True), block()),
            lambda: self._for(value(), block(True), block()),
            lambda: self._tag(f"macro f(p, q={value()})") + block(False) + "{{ q }}" + self._tag("endmacro"),
            lambda: self._tag(f"set {self._pick('a', 'x|upper')}") + block(False) + self._tag("endset"),
            lambda: self._tag("generation") + block(False) + self._tag("endgeneration"),
            lambda: self._tag(f"with a = {value()}") + block() + self._tag("endwith"),
            lambda: self._tag("filter upper") + block(False) + self._tag("endfilter"),
            lambda: self._tag(f"call f({value()})") + block(False) + self._tag("endcall"),
            lambda: self._tag(f"if {value()}") + self._tag("break" if loop else "set a = 1") + self._tag("endif"),
        ]
        return self._random.choice(plain if depth <= 0 else forms)()

    def _for(self, values: str, body: str, otherwise: str) -> str:
        head = self._pick(
            *["m in messages", "m in messages", "x in range(3)", "a, b in d.items()", f"x in {values}"],
            *[f"m in messages if {values}", f"x in [1, 2] if {values} recursive"],
        )
        return self._tag(f"for {head}") + body + self._pick("", self._tag("else") + otherwise) + self._tag("endfor")
