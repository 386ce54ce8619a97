#!/usr/bin/env python3
"""unicode_tables.py OUT.c: called by tokenizers.sh. Where PCRE2 and utf8proc, as installed here, and
the `tokenizers` library follow other versions of Unicode."""
import ctypes
import ctypes.util
import sys

from tokenizers import Regex, normalizers, pre_tokenizers

CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
POINTS = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
BLOCK = 4096
UTF, UCP = 0x00080000, 0x00020000


class Pcre2:
    def __init__(self):
        self.lib = ctypes.CDLL(ctypes.util.find_library("pcre2-8"))
        for name in ("pcre2_compile_8", "pcre2_match_data_create_8", "pcre2_get_ovector_pointer_8"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.lib.pcre2_get_ovector_pointer_8.restype = ctypes.POINTER(ctypes.c_size_t)

    def members(self, pattern):
        error, at, found = ctypes.c_int(), ctypes.c_size_t(), set()
        code = self.lib.pcre2_compile_8(
            pattern.encode(), ctypes.c_size_t(len(pattern)), UTF | UCP, ctypes.byref(error), ctypes.byref(at), None
        )
        assert code, pattern
        data = ctypes.c_void_p(self.lib.pcre2_match_data_create_8(1, None))
        for first in range(0, len(POINTS), BLOCK):
            text = "".join(map(chr, POINTS[first : first + BLOCK])).encode()
            at = 0
            while (
                self.lib.pcre2_match_8(
                    ctypes.c_void_p(code), text, ctypes.c_size_t(len(text)), ctypes.c_size_t(at), 0, data, None
                )
                > 0
            ):
                begin, at = self.lib.pcre2_get_ovector_pointer_8(data)[:2]
                found.update(map(ord, text[begin:at].decode()))
        return found


def official_members(pattern):
    cut, found = pre_tokenizers.Split(Regex(pattern), "removed", invert=True), set()
    for first in range(0, len(POINTS), BLOCK):
        block = POINTS[first : first + BLOCK]
        for _, (begin, end) in cut.pre_tokenize_str("".join(map(chr, block))):
            found.update(block[begin:end])
    return found


def held():
    """Marks that reorder by utf8proc's classes and not by those of `tokenizers`."""
    lib, nfc = ctypes.CDLL(ctypes.util.find_library("utf8proc")), normalizers.NFC()
    lib.utf8proc_get_property.restype = ctypes.POINTER(ctypes.c_int16)
    found = {0x11930}  # second of the one composition since Unicode 9 that takes no mark
    for point in POINTS:
        if lib.utf8proc_get_property(point)[1] > 1 and nfc.normalize_str(chr(point)) == chr(point):
            if nfc.normalize_str(f"q{chr(point)}\u0334") == f"q{chr(point)}\u0334":
                found.add(point)
    return found


def ranges(points):
    out = []
    for point in sorted(points):
        if out and out[-1][1] == point - 1:
            out[-1][1] = point
        else:
            out.append([point, point])
    return out


def main():
    pcre2, newer = Pcre2(), []
    for name, theirs, ours in [(c, f"\\p{{{c}}}", f"\\p{{{c}}}") for c in CATEGORIES] + [
        ("Han", "\\p{Han}", "\\p{sc:Han}")
    ]:
        official, known = official_members(theirs), pcre2.members(ours + "+")
        if known - official and name != "Mn":
            raise SystemExit(f"{name} lost members: refuse it in tokenizer_regex_translate.c")
        newer += [(first, last, name) for first, last in ranges(official - known)]
    rows = ['    {0x%05x, 0x%05x, "%s"},' % row for row in sorted(newer)]
    marks = ['    {0x%05x, 0x%05x, ""},' % tuple(row) for row in ranges(held())]
    with open(sys.argv[1], "w", encoding="ascii") as file:
        file.write(
            '#include "common/model/tokenizer_unicode.h"\n\n'
            "/* Made by `tools/oracle/tokenizers.sh unicode`; not to be edited. */\n\n"
            "const struct fx_unicode_range fx_unicode_newer[] = {\n" + "\n".join(rows) + "\n};\n"
            "const size_t fx_unicode_newer_count = FX_COUNT(fx_unicode_newer);\n\n"
            "const struct fx_unicode_range fx_unicode_held[] = {\n" + "\n".join(marks) + "\n};\n"
            "const size_t fx_unicode_held_count = FX_COUNT(fx_unicode_held);\n"
        )


main()
