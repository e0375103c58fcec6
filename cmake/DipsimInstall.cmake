# `cmake --install`: libraries, headers, the program, its configs, and a package for find_package(dipsim).
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY DIPSIM_LIBRARIES)
foreach(name IN LISTS libraries)
  get_target_property(header_sets dipsim_${name} INTERFACE_HEADER_SETS)
  set(headers)
  if(header_sets)
    set(headers FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/dipsim")
  endif()
  install(TARGETS dipsim_${name} EXPORT dipsimTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${headers})
endforeach()
if(TARGET dipsim)
  install(TARGETS dipsim RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/configs")
  install(DIRECTORY configs/ DESTINATION "${CMAKE_INSTALL_DATADIR}/dipsim/configs")
endif()

if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/validate/published")
  install(DIRECTORY validate/published/ DESTINATION "${CMAKE_INSTALL_DATADIR}/dipsim/published")
endif()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/dipsim")
install(EXPORT dipsimTargets NAMESPACE dipsim:: DESTINATION "${package_dir}")
configure_package_config_file(cmake/dipsimConfig.cmake.in "${PROJECT_BINARY_DIR}/dipsimConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/dipsimConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/dipsimConfig.cmake" "${PROJECT_BINARY_DIR}/dipsimConfigVersion.cmake"
        DESTINATION "${package_dir}")
