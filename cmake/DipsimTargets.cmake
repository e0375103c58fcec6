# The functions that turn a folder into a target.

# Sources and headers of a folder, its subfolders only with `recurse`.
function(dipsim_glob out recurse)
  if(recurse)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS LIST_DIRECTORIES false ${ARGN})
  else()
    file(GLOB files CONFIGURE_DEPENDS LIST_DIRECTORIES false ${ARGN})
  endif()
  set(${out} "${files}" PARENT_SCOPE)
endfunction()

# dipsim_library(NAME DIR dir [RECURSE] [DEPENDS name...] [LINK_PUBLIC target...] [LINK_PRIVATE target...])
#
# Makes the static library dipsim::NAME from the .cpp and .hpp files of a folder. DEPENDS names the
# libraries of this project that it may use, by their NAMEs. A folder without .cpp files becomes an
# INTERFACE library, so that it can be filled later.
function(dipsim_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "RECURSE" "DIR" "DEPENDS;LINK_PUBLIC;LINK_PRIVATE")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_DIR)
    message(FATAL_ERROR "dipsim_library(${name}): DIR is missing, or unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(dir "${PROJECT_SOURCE_DIR}/${arg_DIR}")
  dipsim_glob(sources "${arg_RECURSE}" "${dir}/*.cpp")
  dipsim_glob(headers "${arg_RECURSE}" "${dir}/*.hpp")

  set(target dipsim_${name})
  set(scope INTERFACE)
  if(sources)
    set(scope PUBLIC)
    add_library(${target} STATIC ${sources})
    # BUILD_INTERFACE keeps the warnings, and libraries that are only headers, out of the installed targets.
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:dipsim_warnings>)
    foreach(library IN LISTS arg_LINK_PRIVATE)
      get_target_property(type ${library} TYPE)
      if(type STREQUAL "INTERFACE_LIBRARY")
        target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:${library}>)
      else()
        target_link_libraries(${target} PRIVATE ${library})
      endif()
    endforeach()
  else()
    add_library(${target} INTERFACE)
  endif()
  add_library(dipsim::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})

  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(
    ${target} ${scope} "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
                       "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/dipsim>")
  if(headers)
    target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${headers})
  endif()
  list(TRANSFORM arg_DEPENDS PREPEND dipsim_)
  target_link_libraries(${target} ${scope} ${arg_DEPENDS} ${arg_LINK_PUBLIC})

  set_property(GLOBAL APPEND PROPERTY DIPSIM_LIBRARIES ${name})
endfunction()

# Definitions for the sources of one library; nothing while it has no sources.
function(dipsim_private_definitions name)
  get_target_property(type dipsim_${name} TYPE)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    target_compile_definitions(dipsim_${name} PRIVATE ${ARGN})
  endif()
endfunction()

# dipsim_program(NAME DIR dir DEPENDS name... [LINK_PRIVATE target...])
#
# Makes a program at the top of the build folder; nothing while the folder has no .cpp files.
function(dipsim_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DIR" "DEPENDS;LINK_PRIVATE")
  dipsim_glob(sources "" "${PROJECT_SOURCE_DIR}/${arg_DIR}/*.cpp")
  if(NOT sources)
    message(STATUS "${arg_DIR}/ has no sources yet: the program ${name} is not built")
    return()
  endif()
  add_executable(${name} ${sources})
  list(TRANSFORM arg_DEPENDS PREPEND dipsim::)
  target_link_libraries(${name} PRIVATE dipsim_warnings ${arg_DEPENDS} ${arg_LINK_PRIVATE})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endfunction()
