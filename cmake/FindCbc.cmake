# Cbc, the COIN-OR branch-and-cut solver, through its C interface: Cbc::Cbc. Debian: coinor-libcbc-dev.
find_path(Cbc_INCLUDE_DIR Cbc_C_Interface.h PATH_SUFFIXES coin coin-or)
find_library(Cbc_LIBRARY CbcSolver)
mark_as_advanced(Cbc_INCLUDE_DIR Cbc_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Cbc REQUIRED_VARS Cbc_LIBRARY Cbc_INCLUDE_DIR)

if(Cbc_FOUND AND NOT TARGET Cbc::Cbc)
  add_library(Cbc::Cbc UNKNOWN IMPORTED)
  set_target_properties(Cbc::Cbc PROPERTIES IMPORTED_LOCATION "${Cbc_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                               "${Cbc_INCLUDE_DIR}")
endif()
