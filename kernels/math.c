#include "kernels/math.h"

#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW 0x1.a39ef35793c76p-33
#define ROUND_MAGIC 0x1.8p52

enum { EXP_TERMS = 13, LOG_TERMS = 12, SIN_TERMS = 8, COS_TERMS = 8 };

static double from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static uint64_t to_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
/* 2^n for a normal result */
static double power_of_two(int n) {
    return from_bits((uint64_t)(n + 1023) << 52);
}
static double round_to_integer(double x) {
    return x + ROUND_MAGIC - ROUND_MAGIC;
}

double fx_exp(double x) {
    static const double factorials[EXP_TERMS + 1] = {
        1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800, 39916800, 479001600, 6227020800};
    if (isnan(x)) return x;
    if (x > 710) return INFINITY;
    if (x < -746) return 0;
    double n = round_to_integer(x * 0x1.71547652b82fep+0);
    double r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, x));
    double p = 1 / factorials[EXP_TERMS];
    for (int i = EXP_TERMS - 1; i >= 0; i--)
        p = fma(p, r, 1 / factorials[i]);
    int power = (int)n, half = power / 2;
    return p * power_of_two(half) * power_of_two(power - half);
}

/* log(2^e m) = e ln2 + log(1 + f), m in [sqrt(1/2), sqrt(2)), f = m - 1, s = f / (2 + f):
 * log(1 + f) = f - (f^2/2 - s (f^2/2 + R)), R = 2 s^2/3 + 2 s^4/5 + ... */
double fx_log(double x) {
    int exponent = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        exponent = -54;
    }
    uint64_t bits = to_bits(x);
    exponent += (int)(bits >> 52) - 1023;
    double m = from_bits((bits & 0xfffffffffffffu) | (uint64_t)1023 << 52);
    if (m >= 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        exponent++;
    }
    double f = m - 1, s = f / (2 + f), z = s * s, half = 0.5 * f * f, rest = 0, e = exponent;
    for (int i = LOG_TERMS; i >= 1; i--)
        rest = fma(rest, z, 2.0 / (2 * i + 1));
    return e * LN2_HIGH - ((half - (s * (half + rest * z) + e * LN2_LOW)) - f);
}

/* x - n pi/2, |.| <= pi/4; pi/2 in three parts */
static double reduce(double x, uint64_t *quadrant) {
    double n = round_to_integer(x * 0x1.45f306dc9c883p-1);
    *quadrant = (uint64_t)(int64_t)n & 3;
    double r = fma(n, -0x1.921fb54442d18p+0, x);
    r = fma(n, -0x1.1a62633145c07p-54, r);
    return fma(n, 0x1.f1976b7ed8fbcp-110, r);
}

static double sin_reduced(double r) {
    double z = r * r, p = 0;
    for (int i = SIN_TERMS; i >= 1; i--) /* 1 - z/(2*3) (1 - z/(4*5) (1 - ...)) */
        p = (1 - p) * z / (2 * i * (2 * i + 1));
    return fma(-p, r, r);
}
static double cos_reduced(double r) {
    double z = r * r, p = 0;
    for (int i = COS_TERMS + 1; i >= 2; i--)
        p = (1 - p) * z / ((2 * i - 1) * (2 * i));
    double head = 1 - 0.5 * z;
    return head + ((1 - head) - 0.5 * z + 0.5 * z * p); /* the rounding of head is put back */
}

static double sin_from(double r, uint64_t quadrant) {
    double value = quadrant & 1 ? cos_reduced(r) : sin_reduced(r);
    return quadrant & 2 ? -value : value;
}
double fx_sin(double x) {
    uint64_t quadrant = 0;
    double r = reduce(x, &quadrant);
    return sin_from(r, quadrant);
}
double fx_cos(double x) {
    uint64_t quadrant = 0;
    double r = reduce(x, &quadrant);
    return sin_from(r, quadrant + 1);
}

float fx_powf(float x, float y) {
    return (float)fx_exp((double)y * fx_log(x));
}
