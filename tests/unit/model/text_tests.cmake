foreach(name IN ITEMS detok template template_limits template_refuses
    tokenizer tokenizer_bpe tokenizer_config tokenizer_refuses)
  fx_add_test(unit/model/test_${name}.c LABELS unit DEPS fx_text)
endforeach()
