// networks.hpp - lists of networks, and whether an address is in one of them.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace balanceroute::net {

// Networks is a list of networks; an empty one stands for every address.
//   Mapped   an IPv4 address written in IPv6 (::ffff:10.0.0.1) is the IPv4 address.
//   Threads  any; it never changes.
class Networks {
 public:
  Networks() = default;
  // Each as "10.0.0.0/8", "fd00::/8" or one address; the error names the one that is not.
  static std::expected<Networks, std::string> parse(const std::vector<std::string>& texts);

  bool contain(const boost::asio::ip::address& address) const;
  // Whether `host` is an address, and not in them. Of a name nothing is known before it is looked up.
  bool exclude(const std::string& host) const;

 private:
  struct Network {
    boost::asio::ip::address_v6::bytes_type first;
    unsigned bits;  // of `first` that its addresses share
  };
  static std::expected<Network, std::string> parse_one(std::string_view text);

  std::vector<Network> networks_;
};

}  // namespace balanceroute::net
