#include "proxy/discovery.hpp"

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <utility>

#include "config/yaml_reader.hpp"
#include "net/client.hpp"

namespace balanceroute::proxy {

namespace {

using boost::asio::ip::tcp;

class SystemResolver final : public Resolver {
 public:
  explicit SystemResolver(net::IoThread& thread) : thread_{thread} {}

  net::asio::awaitable<Addresses> addresses_of(std::string host) override {
    tcp::resolver resolver{thread_.context()};
    boost::system::error_code failure;
    const auto found =
        co_await resolver.async_resolve(host, "", net::asio::redirect_error(net::asio::use_awaitable, failure));
    if (failure) co_return std::unexpected(host + ": " + failure.message());
    std::vector<std::string> addresses;
    for (const auto& entry : found) addresses.push_back(entry.endpoint().address().to_string());
    co_return addresses;
  }

 private:
  net::IoThread& thread_;
};

struct WorkerFile {
  std::vector<WorkerParams> workers;

  void visit_params(ParamVisitor& visitor) {
    visitor.nested_list({"workers", "The workers that there are now."}, workers);
  }
};

class FileSource final : public WorkerSource {
 public:
  explicit FileSource(std::string path) : path_{std::move(path)} {}

  net::asio::awaitable<Found> look() override { co_return read(); }

 private:
  [[nodiscard]] Found read() const {
    const auto text = read_config_file(path_);
    if (!text) return std::unexpected(text.error().text());
    WorkerFile file;
    const auto origins = read_yaml(*text, path_, file);
    if (!origins) return std::unexpected(origins.error().text());
    for (const WorkerParams& worker : file.workers) {
      const auto endpoint = net::parse_http_url(worker.url, net::Schemes::http_and_https);
      if (!endpoint) return std::unexpected(path_ + ": " + net::without_userinfo(worker.url) + ": " + endpoint.error());
    }
    return file.workers;
  }

  std::string path_;
};

class DnsSource final : public WorkerSource {
 public:
  DnsSource(net::Endpoint name, std::unique_ptr<Resolver> resolver)
      : name_{std::move(name)}, resolver_{std::move(resolver)} {}

  net::asio::awaitable<Found> look() override {
    auto addresses = co_await resolver_->addresses_of(name_.host);
    if (!addresses) co_return std::unexpected(addresses.error());
    std::ranges::sort(*addresses);
    const auto again = std::ranges::unique(*addresses);
    addresses->erase(again.begin(), again.end());
    std::vector<WorkerParams> workers;
    for (const std::string& address : *addresses) {
      workers.push_back({.url = net::Endpoint{address, name_.port, name_.tls}.url()});
    }
    co_return workers;
  }

 private:
  net::Endpoint name_;
  std::unique_ptr<Resolver> resolver_;
};

std::optional<net::Endpoint> split(const std::string& name) {
  const bool has_scheme = name.find("://") != std::string::npos;
  const auto endpoint = net::parse_http_url(has_scheme ? name : "http://" + name, net::Schemes::http_and_https);
  const bool has_port = name.rfind(':') != std::string::npos && !name.ends_with(']');
  if (!endpoint || !has_port) return std::nullopt;
  return *endpoint;
}

}  // namespace

std::unique_ptr<Resolver> make_system_resolver(net::IoThread& thread) {
  return std::make_unique<SystemResolver>(thread);
}

std::unique_ptr<WorkerSource> make_file_source(std::string path) {
  return std::make_unique<FileSource>(std::move(path));
}

std::unique_ptr<WorkerSource> make_dns_source(net::Endpoint name, std::unique_ptr<Resolver> resolver) {
  return std::make_unique<DnsSource>(std::move(name), std::move(resolver));
}

std::unique_ptr<WorkerSource> make_source(const DiscoveryParams& params, net::IoThread& thread) {
  if (params.source == "file") return make_file_source(params.file);
  return make_dns_source(*split(params.dns_name), make_system_resolver(thread));
}

std::optional<std::string> problem_of(const DiscoveryParams& params) {
  if (params.source == "file" && params.file.empty())
    return "file = '': expected the path of a file, as source is file";
  if (params.source == "dns" && !split(params.dns_name)) {
    return "dns_name = '" + net::without_userinfo(params.dns_name) + "': expected host:port, as source is dns";
  }
  return std::nullopt;
}

Discovery::Discovery(net::IoThread& thread, std::unique_ptr<WorkerSource> source, double interval_ms, Tell tell,
                     net::TaskGroup::OnFailure on_failure)
    : thread_{thread},
      source_{std::move(source)},
      interval_{std::chrono::duration_cast<net::Duration>(std::chrono::duration<double, std::milli>{interval_ms})},
      tell_{std::move(tell)},
      pause_{thread},
      tasks_{thread, std::move(on_failure)} {}

void Discovery::start() {
  thread_.dispatch([this] { tasks_.spawn(run()); });
}

void Discovery::stop() {
  thread_.call([this] { tasks_.cancel_all(); });
  bool ended = false;
  while (!ended) thread_.call([&] { ended = tasks_.size() == 0; });
}

net::asio::awaitable<void> Discovery::run() {
  for (;;) {
    auto found = co_await source_->look();
    tell_(std::move(found));
    const net::WaitResult waited = co_await pause_.wait(thread_.now() + interval_);
    if (waited == net::WaitResult::Cancelled) co_return;
  }
}

}  // namespace balanceroute::proxy
