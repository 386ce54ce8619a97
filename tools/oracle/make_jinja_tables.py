#!/usr/bin/env python3
"""Writes common/model/jinja_tables.h: case mappings and printability as this Python has them.

Python 3.11 (Unicode 14.0) made the committed file. Needs no package.
"""
import os
import unicodedata

POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def is_cased(char):
    return (char + "a").title().endswith("a")


def is_ignorable(char):
    return ("A" + char + "Σ").lower().endswith("ς") and not (char + "Σ").lower().endswith("ς")


def ranges(test):
    out = []
    for c in range(0x110000):
        if 0xD800 <= c <= 0xDFFF or not test(chr(c)):
            continue
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def steps(mapping):
    """Runs of code points `step` apart that move by the same distance."""
    out = []
    for c in sorted(mapping):
        delta = mapping[c] - c
        if out:
            first, last, step, moved = out[-1]
            gap = c - last
            if moved == delta and (gap == step or (first == last and gap <= 2)):
                out[-1] = [first, c, gap, moved]
                continue
        out.append([c, c, 1, delta])
    return out


def split(change):
    single, several = {}, {}
    for c in POINTS:
        new = change(chr(c))
        if new == chr(c):
            continue
        if len(new) == 1:
            single[c] = ord(new)
        else:
            several[c] = [ord(x) for x in new]
    return single, several


def rows(items, per_line):
    lines = []
    for i in range(0, len(items), per_line):
        lines.append("    " + ", ".join(items[i : i + per_line]) + ",")
    return "\n".join(lines)


def table(kind, name, items, per_line):
    return f"static const {kind} {name}[] = {{\n{rows(items, per_line)}\n}};\n"


def main():
    upper, upper_many = split(str.upper)
    lower, lower_many = split(str.lower)
    title, title_many = split(str.title)
    # the title table holds only where title differs from upper
    titles = {c: [c] for c in POINTS if chr(c).title() == chr(c) and chr(c).upper() != chr(c)}
    titles |= {c: [x] for c, x in title.items() if upper.get(c) != x or c in upper_many}
    titles |= {c: x for c, x in title_many.items() if upper_many.get(c) != x}
    many = lambda m: ["{0x%x, {%s}}" % (c, ", ".join("0x%x" % x for x in m[c])) for c in sorted(m)]
    moves = lambda m: ["{0x%x, 0x%x, %d, %d}" % tuple(r) for r in steps(m)]
    spans = lambda test: ["{0x%x, 0x%x}" % tuple(r) for r in ranges(test)]
    parts = [
        "#pragma once\n#include <stdint.h>\n\n"
        "/* Unicode %s as Python has it; tools/oracle/make_jinja_tables.py writes this file. */\n\n"
        "/* clang-format off */\n"
        "struct fx_jinja_move {\n    uint32_t first, last, step;\n    int32_t delta;\n};\n"
        "struct fx_jinja_many {\n    uint32_t point, to[3];\n};\n"
        "struct fx_jinja_span {\n    uint32_t first, last;\n};\n" % unicodedata.unidata_version,
        table("struct fx_jinja_move", "upper_moves", moves(upper), 3),
        table("struct fx_jinja_move", "lower_moves", moves(lower), 3),
        table("struct fx_jinja_many", "upper_many", many(upper_many), 3),
        table("struct fx_jinja_many", "lower_many", many(lower_many), 3),
        table("struct fx_jinja_many", "title_many", many(titles), 3),
        table("struct fx_jinja_span", "cased", spans(is_cased), 5),
        table("struct fx_jinja_span", "ignorable", spans(is_ignorable), 5),
        table("struct fx_jinja_span", "hidden", spans(lambda c: not c.isprintable()), 5),
    ]
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(root, "common/model/jinja_tables.h"), "w", encoding="ascii") as file:
        file.write("\n".join(parts))


main()
