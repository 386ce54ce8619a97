void f(void) {
    send("xadd %s *", key);
}
