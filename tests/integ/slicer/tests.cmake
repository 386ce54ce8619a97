foreach(test IN ITEMS slicer slicer_faults)
  fx_add_test(integ/slicer/test_${test}.c LABELS integ TIMEOUT 240 DEPS fx_rpc fx_model)
  add_dependencies(integ_slicer_test_${test} fractal-slicer)
endforeach()
