# libevent 2.1: targets Libevent::Core, Libevent::Extra (DNS), Libevent::OpenSSL, Libevent::Pthreads.
find_path(LIBEVENT_INCLUDE_DIR event2/event.h)
foreach(part IN ITEMS core extra openssl pthreads)
  find_library(LIBEVENT_${part}_LIBRARY event_${part})
endforeach()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libevent REQUIRED_VARS LIBEVENT_INCLUDE_DIR LIBEVENT_core_LIBRARY
  LIBEVENT_extra_LIBRARY LIBEVENT_openssl_LIBRARY LIBEVENT_pthreads_LIBRARY)
mark_as_advanced(LIBEVENT_INCLUDE_DIR LIBEVENT_core_LIBRARY LIBEVENT_extra_LIBRARY
  LIBEVENT_openssl_LIBRARY
  LIBEVENT_pthreads_LIBRARY)

# libevent_target(Core core [dependency ...])
function(libevent_target name part)
  if(TARGET Libevent::${name})
    return()
  endif()
  add_library(Libevent::${name} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(Libevent::${name} PROPERTIES
    IMPORTED_LOCATION ${LIBEVENT_${part}_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${LIBEVENT_INCLUDE_DIR}
    INTERFACE_LINK_LIBRARIES "${ARGN}")
endfunction()

if(Libevent_FOUND)
  find_package(OpenSSL REQUIRED)
  libevent_target(Core core)
  libevent_target(Extra extra Libevent::Core)
  libevent_target(OpenSSL openssl Libevent::Core OpenSSL::SSL OpenSSL::Crypto)
  libevent_target(Pthreads pthreads Libevent::Core)
endif()
