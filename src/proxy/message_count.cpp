#include "proxy/message_count.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace balanceroute::proxy {

namespace {

namespace ondemand = simdjson::ondemand;

// Of content parts: image_url, input_image, input_audio, video_url, file, document and the like.
bool is_media(std::string_view type) {
  constexpr std::array<std::string_view, 5> kKinds{"image", "audio", "video", "file", "document"};
  return std::ranges::any_of(kKinds, [type](std::string_view kind) { return type.contains(kind); });
}

PromptPart part_of(std::string_view role) {
  if (role == "system" || role == "developer") return PromptPart::System;
  if (role == "assistant") return PromptPart::Assistant;
  if (role == "tool" || role == "function") return PromptPart::Tool;
  return PromptPart::User;
}

// One message: its bytes without those of its media.
class MessageCount {
 public:
  simdjson::error_code read(ondemand::object message, PromptContent& content) {
    std::string_view raw;
    if (const auto failure = message.raw_json().get(raw)) return failure;
    if (const auto failure = message.reset().error()) return failure;
    text_ = raw;
    for (auto field : message) {
      std::string_view key;
      if (const auto failure = field.unescaped_key().get(key)) return failure;
      ondemand::value value;
      if (const auto failure = field.value().get(value)) return failure;
      if (key == "role") {
        std::string_view role;
        if (!value.get_string().get(role)) part_ = part_of(role);
      } else if (key == "content") {
        if (const auto failure = read_parts(value)) return failure;
      }
    }
    content.add(part_, raw.size() - media_bytes_);
    content.add(PromptPart::Media, media_);
    return simdjson::SUCCESS;
  }

  // After read().
  [[nodiscard]] bool is_systems() const { return part_ == PromptPart::System; }
  [[nodiscard]] std::string_view text() const { return text_; }

 private:
  // Text, or a list of parts. Parts may have content of their own, as results of tools do.
  simdjson::error_code read_parts(ondemand::value value) {
    ondemand::array parts;
    if (value.get_array().get(parts)) return simdjson::SUCCESS;
    for (auto element : parts) {
      ondemand::object part;
      if (const auto failure = element.get_object().get(part)) {
        if (failure == simdjson::INCORRECT_TYPE) continue;
        return failure;
      }
      if (const auto failure = read_part(part)) return failure;
    }
    return simdjson::SUCCESS;
  }

  simdjson::error_code read_part(ondemand::object part) {
    std::string_view raw;
    if (const auto failure = part.raw_json().get(raw)) return failure;
    if (const auto failure = part.reset().error()) return failure;
    std::string_view type;
    if (!part.find_field_unordered("type").get_string().get(type) && is_media(type)) {
      ++media_;
      media_bytes_ += raw.size();
      return simdjson::SUCCESS;
    }
    ondemand::value inner;
    if (part.find_field_unordered("content").get(inner)) return simdjson::SUCCESS;
    return read_parts(inner);
  }

  PromptPart part_ = PromptPart::User;
  std::string_view text_;
  std::size_t media_ = 0;
  std::size_t media_bytes_ = 0;
};

}  // namespace

simdjson::error_code add_messages(ondemand::array messages, PromptContent& content, std::string_view& opening) {
  bool opens = true;
  for (auto element : messages) {
    ondemand::value value;
    if (const auto failure = element.get(value)) return failure;
    ondemand::object message;
    const auto failure = value.get_object().get(message);
    MessageCount count;
    if (failure == simdjson::INCORRECT_TYPE) {
      content.add(PromptPart::User, value.raw_json_token().size());
    } else if (failure) {
      return failure;
    } else if (const auto broken = count.read(message, content)) {
      return broken;
    }
    opens = opens && count.is_systems();
    if (!opens) continue;
    const char* begin = opening.empty() ? count.text().data() : opening.data();
    opening = {begin, count.text().data() + count.text().size()};
  }
  return simdjson::SUCCESS;
}

}  // namespace balanceroute::proxy
