float dot(float a, float b, float c) {
    return fmaf(a, b, sqrtf(c)) + fx_expf(c);
}
