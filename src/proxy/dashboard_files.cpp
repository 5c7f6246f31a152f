// dashboard_files.cpp - what web/ was built to, copied into the program as it is by the assembler.
#include "proxy/dashboard.hpp"

#ifdef BALANCEROUTE_DASHBOARD_FOLDER

#define BR_INCLUDE_FILE(symbol, name)                                   \
  __asm__(                                                              \
      ".section .rodata\n"                                              \
      ".global " symbol                                                 \
      "\n"                                                              \
      ".global " symbol "_end\n" symbol                                 \
      ":\n"                                                             \
      ".incbin \"" BALANCEROUTE_DASHBOARD_FOLDER "/" name "\"\n" symbol \
      "_end:\n"                                                         \
      ".byte 0\n"                                                       \
      ".previous\n")

BR_INCLUDE_FILE("balanceroute_dashboard_page", "index.html");
BR_INCLUDE_FILE("balanceroute_dashboard_script", "dashboard.js");
BR_INCLUDE_FILE("balanceroute_dashboard_style", "dashboard.css");
BR_INCLUDE_FILE("balanceroute_dashboard_icon", "icon.svg");

extern "C" {
extern const char balanceroute_dashboard_page[];
extern const char balanceroute_dashboard_page_end[];
extern const char balanceroute_dashboard_script[];
extern const char balanceroute_dashboard_script_end[];
extern const char balanceroute_dashboard_style[];
extern const char balanceroute_dashboard_style_end[];
extern const char balanceroute_dashboard_icon[];
extern const char balanceroute_dashboard_icon_end[];
}

namespace balanceroute::proxy {

std::vector<DashboardFile> dashboard_files() {
  return {
      {"/", "text/html; charset=utf-8", {balanceroute_dashboard_page, balanceroute_dashboard_page_end}},
      {"/dashboard.js",
       "text/javascript; charset=utf-8",
       {balanceroute_dashboard_script, balanceroute_dashboard_script_end}},
      {"/dashboard.css", "text/css; charset=utf-8", {balanceroute_dashboard_style, balanceroute_dashboard_style_end}},
      {"/icon.svg", "image/svg+xml", {balanceroute_dashboard_icon, balanceroute_dashboard_icon_end}}};
}

}  // namespace balanceroute::proxy

#else

namespace balanceroute::proxy {

std::vector<DashboardFile> dashboard_files() {
  return {};
}

}  // namespace balanceroute::proxy

#endif
