// discovery.hpp - workers that are not in the configuration: looks for them again and again.
//
// Leaves out what becomes of those that are found, or found no more (membership.hpp).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/event.hpp"
#include "net/io_thread.hpp"
#include "net/task_group.hpp"
#include "proxy/discovery_params.hpp"
#include "proxy/serve_params.hpp"

namespace balanceroute::proxy {

// WorkerSource says which workers there are now.
class WorkerSource {
 public:
  using Found = std::expected<std::vector<WorkerParams>, std::string>;

  virtual ~WorkerSource() = default;
  virtual net::asio::awaitable<Found> look() = 0;
};

// Resolver finds the addresses of a name.
class Resolver {
 public:
  using Addresses = std::expected<std::vector<std::string>, std::string>;

  virtual ~Resolver() = default;
  virtual net::asio::awaitable<Addresses> addresses_of(std::string host) = 0;
};

// By the system's resolver, on `thread`.
std::unique_ptr<Resolver> make_system_resolver(net::IoThread& thread);

// A file with a list `workers`, in the form of the configuration.
std::unique_ptr<WorkerSource> make_file_source(std::string path);
// A worker at every address that the host's name has, in the order of addresses, all at its port.
std::unique_ptr<WorkerSource> make_dns_source(net::Endpoint name, std::unique_ptr<Resolver> resolver);
// As the settings say, which have been checked and do look somewhere.
std::unique_ptr<WorkerSource> make_source(const DiscoveryParams& params, net::IoThread& thread);

// Discovery looks at a source every interval and tells what it found, or why it could not look.
//   Threads  start() before or while `thread` runs; `tell` is called on it. stop() before it ends its loop.
class Discovery {
 public:
  using Tell = std::function<void(WorkerSource::Found)>;

  Discovery(net::IoThread& thread, std::unique_ptr<WorkerSource> source, double interval_ms, Tell tell,
            net::TaskGroup::OnFailure on_failure);

  void start();
  void stop();

 private:
  net::asio::awaitable<void> run();

  net::IoThread& thread_;
  std::unique_ptr<WorkerSource> source_;
  net::Duration interval_;
  Tell tell_;
  net::Event pause_;
  net::TaskGroup tasks_;
};

}  // namespace balanceroute::proxy
