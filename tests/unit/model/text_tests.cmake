foreach(name IN ITEMS detok detok_begin template template_limits template_refuses
    tokenizer tokenizer_bpe tokenizer_config tokenizer_nfc tokenizer_refuses tokenizer_regex
    tokenizer_steps)
  fx_add_test(unit/model/test_${name}.c LABELS unit DEPS fx_text)
endforeach()
