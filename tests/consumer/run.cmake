# Installs dipsim into a fresh prefix, builds the project beside this file against it, and runs it and the
# installed program.  cmake -D BUILD_DIR=... -D WORK_DIR=... -D CXX=... -P run.cmake
file(REMOVE_RECURSE "${WORK_DIR}")
set(prefix "${WORK_DIR}/prefix")
set(build "${WORK_DIR}/build")
# An installed program must find its configs and tables by itself.
unset(ENV{DIPSIM_CONFIGS})
unset(ENV{DIPSIM_PUBLISHED})

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${prefix}" OUTPUT_QUIET
                        COMMAND_ERROR_IS_FATAL ANY)
run("${CMAKE_COMMAND}" -G Ninja -S "${CMAKE_CURRENT_LIST_DIR}" -B "${build}" "-DCMAKE_PREFIX_PATH=${prefix}"
    "-DCMAKE_CXX_COMPILER=${CXX}")
run("${CMAKE_COMMAND}" --build "${build}")
run("${build}/consumer")
if(EXISTS "${prefix}/bin/dipsim")
  run("${prefix}/bin/dipsim" --help)
  run("${prefix}/bin/dipsim" validate --set zero_bubble_main --quiet)
  if(NOT EXISTS "${prefix}/share/dipsim/published/zero_bubble_main.csv")
    message(FATAL_ERROR "the tables of published measurements are not installed")
  endif()
endif()
file(REMOVE_RECURSE "${WORK_DIR}")
