// text_form.hpp - how texts from outside are checked, shown in messages and written to YAML.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace balanceroute {

// Where `text` stops being UTF-8; its size if it is UTF-8 throughout.
[[nodiscard]] std::size_t utf8_prefix(std::string_view text);

// A value as a message shows it: quoted if it would be unclear without, shortened if it is long.
[[nodiscard]] std::string shown(std::string_view value);

// A YAML scalar that reads back as `text`, on one line, whatever is in it; quoted unless it can be nothing but a text.
// `text` is UTF-8.
[[nodiscard]] std::string yaml_text(std::string_view text);

}  // namespace balanceroute
