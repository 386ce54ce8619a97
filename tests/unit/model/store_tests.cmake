foreach(name IN ITEMS config config_values ingest ingest_fault ingest_folder
    ingest_refuses safetensors safetensors_file store store_open)
  fx_add_test(unit/model/test_${name}.c LABELS unit DEPS fx_model)
endforeach()
# A sanitizer's own memory would drown what this one measures.
if(NOT FX_SANITIZE)
  fx_add_test(unit/model/test_ingest_memory.c LABELS unit DEPS fx_model)
endif()
