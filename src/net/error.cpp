#include "net/error.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>

namespace balanceroute::net {

std::string_view to_string(NetFault fault) {
  switch (fault) {
    case NetFault::Resolve:
      return "resolve";
    case NetFault::Connect:
      return "connect";
    case NetFault::Timeout:
      return "timeout";
    case NetFault::Closed:
      return "closed";
    case NetFault::Reset:
      return "reset";
    case NetFault::Protocol:
      return "protocol";
    case NetFault::TooLarge:
      return "too_large";
    case NetFault::Cancelled:
      return "cancelled";
  }
  return "unknown";
}

NetError net_error(const boost::system::error_code& cause, std::string_view doing) {
  namespace error = boost::asio::error;
  NetFault fault = NetFault::Reset;
  if (cause == error::eof) fault = NetFault::Closed;
  if (cause == error::operation_aborted) fault = NetFault::Cancelled;
  if (cause == error::timed_out) fault = NetFault::Timeout;
  if (cause == error::connection_refused || cause == error::host_unreachable || cause == error::network_unreachable) {
    fault = NetFault::Connect;
  }
  return {fault, std::string{doing} + ": " + cause.message()};
}

}  // namespace balanceroute::net
