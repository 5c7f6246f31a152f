// live_settings.hpp - the settings in effect, which may be replaced while requests read them.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "config/config_error.hpp"
#include "proxy/api_keys.hpp"
#include "proxy/serve_params.hpp"

namespace balanceroute::proxy {

// LiveSettings holds the settings of a running router, with the origin of each.
//   Lifetime  what was in effect once stays until the end, so that a reader never holds what is gone: a few kilobytes a
//             reload.
//   Threads   any.
class LiveSettings {
 public:
  struct Version {
    ServeParams params;
    Origins origins;
    ApiKeys keys;  // the content of params.keys.file
    std::vector<CertificateEnd> certificates;
  };

  explicit LiveSettings(Version first) { replace(std::move(first)); }

  const ServeParams* operator->() const { return &current().params; }
  const ServeParams& operator*() const { return current().params; }
  [[nodiscard]] const Version& current() const { return *current_.load(std::memory_order_acquire); }

  void replace(Version next) {
    const std::scoped_lock lock{mutex_};
    const Version& latest = versions_.emplace_back(std::move(next));
    current_.store(&latest, std::memory_order_release);
  }

 private:
  std::mutex mutex_;
  std::list<Version> versions_;
  std::atomic<const Version*> current_{nullptr};
};

}  // namespace balanceroute::proxy
