# jansson: target Jansson::Jansson.
find_path(JANSSON_INCLUDE_DIR jansson.h)
find_library(JANSSON_LIBRARY jansson)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Jansson REQUIRED_VARS JANSSON_INCLUDE_DIR JANSSON_LIBRARY)
mark_as_advanced(JANSSON_INCLUDE_DIR JANSSON_LIBRARY)

if(Jansson_FOUND AND NOT TARGET Jansson::Jansson)
  add_library(Jansson::Jansson UNKNOWN IMPORTED GLOBAL)
  set_target_properties(Jansson::Jansson PROPERTIES
    IMPORTED_LOCATION ${JANSSON_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${JANSSON_INCLUDE_DIR})
endif()
