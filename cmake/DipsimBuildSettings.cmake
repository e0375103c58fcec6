# Language, warnings and sanitizers for everything that this project compiles.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# The target all_verify_interface_header_sets compiles every header alone; `make lint` builds it.
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

# Objects hold no absolute path: messages, __FILE__ and debug information start at the root of the
# repository (so start a debugger there), and ccache can serve one clone from the build of another.
file(RELATIVE_PATH up "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")
add_compile_options("-fdebug-prefix-map=${PROJECT_SOURCE_DIR}=." "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/="
                    "-fmacro-prefix-map=${up}=")

find_program(DIPSIM_CCACHE ccache)
mark_as_advanced(DIPSIM_CCACHE)
if(DIPSIM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
                                  CCACHE_NOHASHDIR=1 "${DIPSIM_CCACHE}")
endif()

# No fused multiply-add behind our back: equal inputs give equal bytes on every machine.
add_compile_options(-ffp-contract=off)

if(DIPSIM_SANITIZE STREQUAL "address-undefined")
  set(sanitizer_flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(DIPSIM_SANITIZE STREQUAL "thread")
  set(sanitizer_flags -fsanitize=thread -fno-omit-frame-pointer)
elseif(NOT DIPSIM_SANITIZE)
  set(sanitizer_flags)
else()
  message(FATAL_ERROR "DIPSIM_SANITIZE is '${DIPSIM_SANITIZE}'; allowed: OFF, address-undefined, thread")
endif()
add_compile_options(${sanitizer_flags})
add_link_options(${sanitizer_flags})

add_library(dipsim_warnings INTERFACE)
target_compile_options(
  dipsim_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor
                            -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND DIPSIM_SANITIZE)
  # GCC's flow-based warnings see the checks that a sanitizer inserts and misfire.
  target_compile_options(dipsim_warnings INTERFACE -Wno-maybe-uninitialized -Wno-stringop-overflow
                                                   -Wno-array-bounds -Wno-restrict)
endif()
