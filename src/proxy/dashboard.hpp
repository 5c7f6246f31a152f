// dashboard.hpp - the web dashboard: the files that web/ was built to, and how a browser gets them.
//
// They hold no data and need no token; what they show they ask of the admin listener like anybody else.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "net/server.hpp"

namespace balanceroute::proxy {

// A file of the dashboard as it is in the program.
struct DashboardFile {
  std::string_view path;
  std::string_view content_type;
  std::string_view content;
};

// None in a program that was built without the dashboard.
std::vector<DashboardFile> dashboard_files();

// Dashboard answers for the pages of the dashboard.
//   Caching  a browser asks each time whether a file has changed, by the hash of its content.
//   Threads  serve() on any I/O thread.
class Dashboard {
 public:
  explicit Dashboard(std::vector<DashboardFile> files);

  [[nodiscard]] bool has(std::string_view path) const;
  // Of a path that it has().
  net::asio::awaitable<void> serve(net::HttpExchange& exchange, std::string_view path) const;

 private:
  struct Entry {
    DashboardFile file;
    std::string tag;
  };
  [[nodiscard]] const Entry* find(std::string_view path) const;

  std::vector<Entry> entries_;
};

}  // namespace balanceroute::proxy
