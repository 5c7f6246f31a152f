// Laws of networks: an address is in a network exactly if their first bits are the same.
#include "net/networks.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace balanceroute::net {
namespace {

bool contain(const std::vector<std::string>& networks, const std::string& address) {
  return Networks::parse(networks)->contain(boost::asio::ip::make_address(address));
}

TEST(Networks, AddressesWithTheSameFirstBitsAreInside) {
  EXPECT_TRUE(contain({"10.0.0.0/8"}, "10.255.255.255"));
  EXPECT_FALSE(contain({"10.0.0.0/8"}, "11.0.0.0"));
  EXPECT_TRUE(contain({"192.168.4.0/22"}, "192.168.7.255"));
  EXPECT_FALSE(contain({"192.168.4.0/22"}, "192.168.8.0"));
  EXPECT_TRUE(contain({"10.1.2.3"}, "10.1.2.3"));
  EXPECT_FALSE(contain({"10.1.2.3"}, "10.1.2.4"));
  EXPECT_TRUE(contain({"fd00::/8"}, "fdff::1"));
  EXPECT_FALSE(contain({"fd00::/8"}, "fe80::1"));
  EXPECT_TRUE(contain({"fd00::/8", "127.0.0.0/8"}, "127.0.0.1"));
  EXPECT_TRUE(contain({"0.0.0.0/0"}, "169.254.169.254"));
  EXPECT_FALSE(contain({"0.0.0.0/0"}, "::1"));
  EXPECT_TRUE(contain({}, "169.254.169.254"));
}

// Law: an IPv4 address cannot be brought in or kept out by writing it as IPv6.
TEST(Networks, MappedAddressesAreWhatTheyMap) {
  EXPECT_TRUE(contain({"10.0.0.0/8"}, "::ffff:10.0.0.1"));
  EXPECT_FALSE(contain({"10.0.0.0/8"}, "::ffff:169.254.169.254"));
}

TEST(Networks, OnlyAddressesCanBeExcludedBeforeTheyAreLookedUp) {
  const auto networks = *Networks::parse({"10.0.0.0/8"});
  EXPECT_TRUE(networks.exclude("127.0.0.1"));
  EXPECT_FALSE(networks.exclude("10.0.0.1"));
  EXPECT_FALSE(networks.exclude("node.example"));
}

TEST(Networks, WhatIsNoNetworkIsNamed) {
  for (const char* text :
       {"", "10.0.0.0/33", "10.0.0/8", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8x", "fd00::/129", "node/8"}) {
    const auto parsed = Networks::parse({"127.0.0.1", text});
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().find("'" + std::string{text} + "'"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace balanceroute::net
