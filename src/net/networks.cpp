#include "net/networks.hpp"

#include <algorithm>
#include <charconv>

namespace balanceroute::net {

namespace {

namespace ip = boost::asio::ip;
using Bytes = ip::address_v6::bytes_type;

constexpr unsigned kBits = 128;
constexpr unsigned kMappedBits = 96;  // what stands before an IPv4 address

Bytes bytes_of(const ip::address& address) {
  return (address.is_v4() ? ip::make_address_v6(ip::v4_mapped, address.to_v4()) : address.to_v6()).to_bytes();
}

bool share(const Bytes& a, const Bytes& b, unsigned bits) {
  const auto whole = static_cast<std::ptrdiff_t>(bits / 8);
  if (!std::equal(a.begin(), a.begin() + whole, b.begin())) return false;
  if (bits % 8 == 0) return true;
  const auto at = static_cast<std::size_t>(whole);
  return (a[at] ^ b[at]) >> (8 - bits % 8) == 0;
}

}  // namespace

std::expected<Networks, std::string> Networks::parse(const std::vector<std::string>& texts) {
  Networks networks;
  for (const std::string& text : texts) {
    const auto one = parse_one(text);
    if (!one) return std::unexpected(one.error());
    networks.networks_.push_back(*one);
  }
  return networks;
}

std::expected<Networks::Network, std::string> Networks::parse_one(std::string_view text) {
  const auto wrong = std::unexpected("'" + std::string{text} + "': expected a network as 10.0.0.0/8 or fd00::/8");
  const auto slash = text.find('/');
  boost::system::error_code failure;
  const ip::address first = ip::make_address(std::string{text.substr(0, slash)}, failure);
  if (failure) return wrong;
  const unsigned before = first.is_v4() ? kMappedBits : 0;
  unsigned bits = kBits - before;
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (error != std::errc{} || end != digits.data() + digits.size() || bits > kBits - before) return wrong;
  }
  return Network{bytes_of(first), before + bits};
}

bool Networks::contain(const ip::address& address) const {
  const Bytes bytes = bytes_of(address);
  return networks_.empty() ||
         std::ranges::any_of(networks_, [&](const Network& one) { return share(one.first, bytes, one.bits); });
}

bool Networks::exclude(const std::string& host) const {
  boost::system::error_code failure;
  const ip::address address = ip::make_address(host, failure);
  return !failure && !contain(address);
}

}  // namespace balanceroute::net
