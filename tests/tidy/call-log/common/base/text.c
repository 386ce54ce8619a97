void f(void) {
    fx_log(FX_LOG_INFO, x);
}
