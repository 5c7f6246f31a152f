// error.hpp - what can go wrong on a connection, as a value.
#pragma once

#include <string>
#include <string_view>

namespace boost::system {
class error_code;
}

namespace balanceroute::net {

enum class NetFault {
  Resolve,    // the name has no address
  Connect,    // refused or unreachable
  Timeout,    // a deadline passed
  Closed,     // the peer ended the connection where more was due
  Reset,      // the connection broke
  Protocol,   // the peer does not speak HTTP/1.1
  TooLarge,   // a limit of ours was passed
  Cancelled,  // we gave up, because the client left or we are stopping
};

std::string_view to_string(NetFault fault);

struct NetError {
  NetFault fault;
  std::string detail;  // for logs: what was being done and the cause
};

// The fault for an error that the operating system or Asio reported while doing `doing`.
NetError net_error(const boost::system::error_code& cause, std::string_view doing);

}  // namespace balanceroute::net
