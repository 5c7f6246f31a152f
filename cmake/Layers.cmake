# One library a folder of src/, whose links are its include rules.
#
# br_layer(core SOURCES a.cpp HEADERS a.hpp LINKS stats LIBRARIES fmt::fmt) makes the target br_core.
# A layer's include root holds nothing but a link to its own folder, so `#include "stats/x.hpp"` compiles only in
# layers that link stats. Every header is also compiled alone (target all_verify_interface_header_sets).

function(br_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;HEADERS;LINKS;LIBRARIES;PRIVATE_LIBRARIES")
  set(root ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/${name} SYMBOLIC)
  list(TRANSFORM arg_HEADERS PREPEND ${root}/${name}/)
  list(TRANSFORM arg_LINKS PREPEND br_)

  if(arg_SOURCES)
    add_library(br_${name} STATIC ${arg_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(br_${name} PRIVATE br_flags ${arg_PRIVATE_LIBRARIES})
  else()
    add_library(br_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_sources(br_${name} ${scope} FILE_SET HEADERS BASE_DIRS ${root} FILES ${arg_HEADERS})
  target_link_libraries(br_${name} ${scope} ${arg_LINKS} ${arg_LIBRARIES})
  set_target_properties(br_${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
endfunction()
