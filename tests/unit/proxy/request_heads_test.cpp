// Laws of heads on their way: what concerns one connection stays there, in both directions.
#include "proxy/request_heads.hpp"

#include <gtest/gtest.h>

#include <string>

namespace balanceroute::proxy {
namespace {

net::HttpRequest request_with(const std::vector<std::pair<std::string, std::string>>& fields) {
  net::HttpRequest request;
  request.method = "POST";
  request.target = "/v1/completions/?a=b";
  for (const auto& [name, value] : fields) request.headers.add(name, value);
  return request;
}

std::string names(const net::HeaderList& headers) {
  std::string all;
  for (const auto& [name, value] : headers) all += name + " ";
  return all;
}

// Law: fields of one hop, those that Connection names, in any case and list, and those that the router says itself do
// not reach the engine; all others do, in their order.
TEST(RequestHeads, FieldsOfOneConnectionStayThere) {
  const auto to_engine = engine_request(request_with({{"Host", "a"},
                                                      {"X-First", "1"},
                                                      {"connection", "keep-alive, X-Named ,\tx-other"},
                                                      {"Connection", "X-Third"},
                                                      {"x-named", "1"},
                                                      {"X-Other", "1"},
                                                      {"X-THIRD", "1"},
                                                      {"Keep-Alive", "5"},
                                                      {"Proxy-Connection", "close"},
                                                      {"Proxy-Authorization", "Basic x"},
                                                      {"TE", "trailers"},
                                                      {"Trailer", "X"},
                                                      {"Transfer-Encoding", "chunked"},
                                                      {"Content-Length", "3"},
                                                      {"Expect", "100-continue"},
                                                      {"Accept-Encoding", "gzip, br"},
                                                      {"HTTP2-Settings", "AAMA"},
                                                      {"X-Request-Id", "the client's"},
                                                      {"traceparent", "00-1-2-01"},
                                                      {"X-Last", "1"}}),
                                        "ours");
  EXPECT_EQ(names(to_engine.headers), "X-First traceparent X-Last X-Request-Id ");
  EXPECT_EQ(to_engine.headers.find("X-Request-Id"), "ours");
  EXPECT_EQ(to_engine.target, "/v1/completions?a=b");
}

// Law: a client cannot have what the router adds taken out again by naming it in Connection.
TEST(RequestHeads, WhatTheRouterAddsCannotBeNamedAway) {
  const auto to_engine = engine_request(request_with({{"Connection", "X-Request-Id, Authorization"}}), "ours");
  EXPECT_EQ(to_engine.headers.find("X-Request-Id"), "ours");
}

TEST(RequestHeads, AnswersLoseTheirConnectionToo) {
  net::HttpResponse answer;
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"Server", "uvicorn"},
                                                                                    {"Connection", "X-Hop, close"},
                                                                                    {"X-Hop", "1"},
                                                                                    {"Keep-Alive", "5"},
                                                                                    {"Upgrade", "h2c"},
                                                                                    {"Proxy-Authenticate", "Basic"},
                                                                                    {"Transfer-Encoding", "chunked"},
                                                                                    {"Content-Length", "3"},
                                                                                    {"X-Request-Id", "the engine's"},
                                                                                    {"Content-Type", "text/plain"}}) {
    answer.headers.add(name, value);
  }
  EXPECT_EQ(names(client_answer(answer, "the client's").headers), "Server Content-Type X-Request-Id ");
}

// Law: headers that choose an engine's rank or peer are found in any case.
TEST(RequestHeads, HeadersThatReachIntoEnginesAreFound) {
  for (const char* name :
       {"X-Data-Parallel-Rank", "x-data-parallel-host-port", "X-PREFILLER-HOST-PORT", "x-vllm-priority"}) {
    EXPECT_EQ(forbidden_header(request_with({{name, "1"}})), name);
  }
  EXPECT_EQ(forbidden_header(request_with({{"X-Data-Parallel", "1"}})), std::nullopt);
}

}  // namespace
}  // namespace balanceroute::proxy
