#include "common/model/tokenizer_load.h"

static bool is_printable(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
}

void fx_alphabet__init(struct fx_alphabet *alphabet) {
    unsigned next = 0x100;
    memset(alphabet->byte_of, 0xff, sizeof alphabet->byte_of);
    for (unsigned byte = 0; byte < 256; byte++) {
        unsigned point = is_printable(byte) ? byte : next++;
        alphabet->byte_of[point] = (int16_t)byte;
        alphabet->point_of[byte] = (uint16_t)point;
    }
    FX_ASSERT(next == FX_ALPHABET_END);
}

int64_t fx_alphabet__decode(const struct fx_alphabet *alphabet, fx_span text, uint8_t *out) {
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned point = text.at[i];
        if (point >= 0xe0) return -1;
        if (point >= 0x80) point = (point & 0x1fU) << 6 | (text.at[++i] & 0x3fU);
        if (point >= FX_ALPHABET_END || alphabet->byte_of[point] < 0) return -1;
        out[count++] = (uint8_t)alphabet->byte_of[point];
    }
    return (int64_t)count;
}
