// engine_key.hpp - the key that a fleet's engines want to see (vLLM and SGLang: --api-key), which no client knows.
#pragma once

#include <expected>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "core/params.hpp"
#include "net/http.hpp"

namespace balanceroute::proxy {

// Where the key is; it is never a setting itself.
struct EngineKeyParams {
  std::string file;
  std::string variable;

  void visit_params(ParamVisitor& visitor);
};

// The key, empty where there is none; `path` is that of the settings. An error never repeats the content.
[[nodiscard]] std::expected<std::string, std::string> read_engine_key(const EngineKeyParams& params,
                                                                      std::string_view path);

// EngineKey signs requests to the engines of one fleet.
//   Threads  any; another key holds for requests that are signed later.
class EngineKey {
 public:
  explicit EngineKey(std::string key) : key_{std::move(key)} {}

  // Without a key headers stay as they are; else nothing that a client has sent as its own key goes on.
  void sign(net::HeaderList& headers) const;
  // Whether it was another one.
  bool replace(std::string key);

 private:
  mutable std::mutex mutex_;
  std::string key_;
};

}  // namespace balanceroute::proxy
