// message_count.hpp - what a list of messages adds to the content of a prompt.
#pragma once

#include <simdjson.h>

#include "proxy/prompt_content.hpp"

namespace balanceroute::proxy {

// Adds the messages of a chat, or the items of a response's input. What has another shape than messages have counts as
// a user's text: to refuse it is for the engine. The error is that of JSON that cannot be read.
[[nodiscard]] simdjson::error_code add_messages(simdjson::ondemand::array messages, PromptContent& content);

}  // namespace balanceroute::proxy
