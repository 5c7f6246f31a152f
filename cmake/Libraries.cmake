# Third-party libraries, all from Debian 12 packages (scripts/setup installs them).
# Why each one: docs/decisions/0002-libraries.md.

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS url)
find_package(simdjson REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(prometheus-cpp REQUIRED CONFIG COMPONENTS core)

# Boost.Asio and Beast, compiled once in src/net/boost_asio.cpp instead of in every file that includes them.
add_library(br_asio INTERFACE)
target_link_libraries(br_asio INTERFACE Boost::headers OpenSSL::SSL Threads::Threads)
target_compile_definitions(br_asio INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED
  BOOST_ASIO_DISABLE_BOOST_COROUTINE)
