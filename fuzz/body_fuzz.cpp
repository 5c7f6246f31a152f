// body_fuzz.cpp - what the body reader accepts it splices rightly: only stream_options and the model differ after.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "proxy/request_body.hpp"
#include "require.hpp"

using namespace balanceroute::proxy;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body{reinterpret_cast<const char*>(data), size};
  for (const GenerationKind kind : {GenerationKind::ChatCompletion, GenerationKind::TextCompletion}) {
    const auto read = read_generation_body(body, kind);
    if (!read) {
      require(!read.error().message.empty());
      continue;
    }
    Splice splice{body};
    ask_for_usage(*read, splice);
    splice.replace(read->model_span, "\"spliced\"");
    const std::string after = splice.apply();
    // The reader leaves the validity of what it does not read to the engine, so only valid bodies are compared.
    nlohmann::json before = nlohmann::json::parse(body, nullptr, false);
    if (before.is_discarded()) continue;
    nlohmann::json changed = nlohmann::json::parse(after, nullptr, false);
    require(!changed.is_discarded());
    require(changed["model"] == "spliced");
    require(changed["stream_options"]["include_usage"] == true);
    before["model"] = changed["model"];
    before["stream_options"] = changed["stream_options"];
    require(before == changed);
  }
  return 0;
}
