#include "config/text_form.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace balanceroute {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

// Bytes of the UTF-8 character at the start of `text`, 0 if there is none: no overlong forms, no surrogates.
std::size_t utf8_character(std::string_view text) {
  struct Form {
    std::uint8_t lead, mask, size;
    std::uint32_t least;
  };
  static constexpr std::array<Form, 4> kForms{
      {{0x00, 0x80, 1, 0}, {0xc0, 0xe0, 2, 0x80}, {0xe0, 0xf0, 3, 0x800}, {0xf0, 0xf8, 4, 0x10000}}};
  const auto byte = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  for (const Form& form : kForms) {
    if ((byte(0) & form.mask) != form.lead) continue;
    if (text.size() < form.size) return 0;
    std::uint32_t point = byte(0) & static_cast<std::uint8_t>(~form.mask);
    for (std::size_t i = 1; i < form.size; ++i) {
      if ((byte(i) & 0xc0) != 0x80) return 0;
      point = (point << 6) | (byte(i) & 0x3fU);
    }
    const bool valid = point >= form.least && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
    return valid ? form.size : 0;
  }
  return 0;
}

// In double quotes; with `ascii`, other characters are written as their bytes.
std::string quoted(std::string_view text, bool ascii = false) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      all += {'\\', c};
    } else if (c == '\n') {
      all += "\\n";
    } else if (is_control(c) || (ascii && !is_ascii(c))) {
      const auto byte = static_cast<unsigned char>(c);
      all += {'\\', 'x', kDigits[byte / 16U], kDigits[byte % 16U]};
    } else {
      all += c;
    }
  }
  return all + '"';
}

// Words that some reader of YAML takes for something else than a text.
bool is_reserved(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kWords{"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  std::string lower{text};
  std::ranges::transform(lower, lower.begin(), [](char c) { return is_letter(c) ? static_cast<char>(c | 0x20) : c; });
  return std::ranges::find(kWords, lower) != kWords.end();
}

}  // namespace

std::size_t utf8_prefix(std::string_view text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const std::size_t size = utf8_character(text.substr(done));
    if (size == 0) break;
    done += size;
  }
  return done;
}

std::string shown(std::string_view value) {
  constexpr std::size_t kLongest = 60;
  const bool utf8 = utf8_prefix(value) == value.size();
  std::string_view start = value.substr(0, kLongest);
  if (utf8) start = start.substr(0, utf8_prefix(start));
  const bool plain =
      utf8 && !value.empty() && std::ranges::none_of(start, [](char c) { return c == ' ' || is_control(c); });
  return (plain ? std::string{start} : quoted(start, !utf8)) + (start.size() < value.size() ? "..." : "");
}

std::string yaml_text(std::string_view text) {
  const auto is_plain = [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view{"_./:@+-"}.find(c) != std::string_view::npos;
  };
  const bool plain = !text.empty() && (is_letter(text.front()) || text.front() == '/') && text.back() != ':' &&
                     std::ranges::all_of(text, is_plain) && !is_reserved(text);
  return plain ? std::string{text} : quoted(text);
}

}  // namespace balanceroute
