#include "services/cli/terminal.h"
#include <unistd.h>

/* C0 and DEL, and C1 (U+0080 to U+009F) by its second byte. */
static bool is_control(fx_span text, size_t i) {
    uint8_t byte = text.at[i];
    if (byte == '\n' || byte == '\t') return false;
    if (byte < 0x20 || byte == 0x7f) return true;
    return byte >= 0x80 && byte < 0xa0 && i > 0 && text.at[i - 1] == 0xc2;
}

static void put_filtered(FILE *out, fx_span text) {
    for (size_t i = 0; i < text.len; i++) {
        bool lead = text.at[i] == 0xc2 && i + 1 < text.len && is_control(text, i + 1);
        if (lead) continue;
        (void)fputc(is_control(text, i) ? '?' : text.at[i], out);
    }
}

void cli_put_text(FILE *out, fx_span text) {
    if (isatty(fileno(out)))
        put_filtered(out, text);
    else
        (void)fwrite(text.at, 1, text.len, out);
    (void)fflush(out);
}

const char *cli_bytes(double bytes, char out[16]) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    size_t unit = 0;
    for (; bytes >= 999.5 && unit + 1 < sizeof units / sizeof *units; unit++)
        bytes /= 1000;
    (void)snprintf(out, 16, unit && bytes < 99.95 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return out;
}
