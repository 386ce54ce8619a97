foreach(name IN ITEMS config config_values ingest ingest_fault ingest_folder ingest_memory
    ingest_refuses safetensors safetensors_file store store_open)
  fx_add_test(unit/model/test_${name}.c LABELS unit DEPS fx_model)
endforeach()
