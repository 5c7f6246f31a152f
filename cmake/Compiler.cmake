# Flags that every target shares.
#
# -ffp-contract=off: scores must have the same bits on every machine, so no fused multiply-add.

add_library(br_flags INTERFACE)
target_compile_options(br_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
  -Wno-missing-field-initializers  # designated initializers leave the rest at their defaults on purpose
  -Werror -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports false positives of these inside inlined libstdc++ code at -O2.
  target_compile_options(br_flags INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds
    -Wno-maybe-uninitialized -Wno-dangling-pointer -Wno-mismatched-new-delete)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Clang reports the deprecated function inside libstdc++ 12's own std::stable_sort; GCC keeps watch over ours.
  target_compile_options(br_flags INTERFACE -Wno-deprecated-declarations)
endif()
if(BALANCEROUTE_SANITIZE)
  target_compile_options(br_flags INTERFACE -fsanitize=${BALANCEROUTE_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(br_flags INTERFACE -fsanitize=${BALANCEROUTE_SANITIZE})
endif()

# Objects do not depend on where the checkout is, so that clones share one cache and builds can be compared.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
find_program(BALANCEROUTE_CCACHE ccache)
if(BALANCEROUTE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true
    CCACHE_ABSSTDERR=true ${BALANCEROUTE_CCACHE})
endif()
find_program(BALANCEROUTE_MOLD mold)
if(BALANCEROUTE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
