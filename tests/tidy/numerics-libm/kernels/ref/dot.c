float dot(float a) {
    return expf(a) + fx_expf(a);
}
