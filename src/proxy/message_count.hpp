// message_count.hpp - what a list of messages adds to the content of a prompt.
#pragma once

#include <simdjson.h>

#include <string_view>

#include "proxy/prompt_content.hpp"

namespace balanceroute::proxy {

// Adds the messages of a chat, or the items of a response's input. What has another shape than messages have counts as
// a user's text: to refuse it is for the engine. `opening` becomes the text of the system messages that come before all
// others, empty if there are none. The error is that of JSON that cannot be read.
[[nodiscard]] simdjson::error_code add_messages(simdjson::ondemand::array messages, PromptContent& content,
                                                std::string_view& opening);

}  // namespace balanceroute::proxy
