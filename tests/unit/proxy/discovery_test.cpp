#include "proxy/discovery.hpp"

#include <gtest/gtest.h>

#include <latch>

namespace balanceroute::proxy {
namespace {

// Answers in the place of DNS.
class FixedResolver final : public Resolver {
 public:
  explicit FixedResolver(Addresses answer) : answer_{std::move(answer)} {}
  net::asio::awaitable<Addresses> addresses_of(std::string /*host*/) override { co_return answer_; }

 private:
  Addresses answer_;
};

WorkerSource::Found look_at(WorkerSource& source) {
  const net::SteadyClock clock;
  net::IoThread thread{"test", clock};
  WorkerSource::Found found;
  std::latch done{1};
  net::TaskGroup tasks{thread, [](const std::exception_ptr&) {}};
  const auto look = [](WorkerSource& from, WorkerSource::Found& into, std::latch& end) -> net::asio::awaitable<void> {
    into = co_await from.look();
    end.count_down();
  };
  thread.start();
  thread.call([&] { tasks.spawn(look(source, found, done)); });
  done.wait();
  bool ended = false;
  while (!ended) thread.call([&] { ended = tasks.size() == 0; });
  thread.stop();
  return found;
}

// Law: each address of the name is one worker, once, in an order that does not depend on the server's.
TEST(Discovery, EveryAddressOfAHeadlessServiceIsAWorker) {
  const auto source = make_dns_source({"decode", 8000}, std::make_unique<FixedResolver>(std::vector<std::string>{
                                                            "10.0.0.2", "fd00::1", "10.0.0.1", "10.0.0.2"}));
  const auto found = look_at(*source);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 3u);
  EXPECT_EQ((*found)[0].url, "http://10.0.0.1:8000");
  EXPECT_EQ((*found)[1].url, "http://10.0.0.2:8000");
  EXPECT_EQ((*found)[2].url, "http://[fd00::1]:8000");
}

// Law: workers behind a name with https are asked by TLS.
TEST(Discovery, WorkersAreAskedAsTheNameSays) {
  const auto source =
      make_dns_source({"decode", 8443, true}, std::make_unique<FixedResolver>(std::vector<std::string>{"10.0.0.1"}));
  EXPECT_EQ(look_at(*source)->front().url, "https://10.0.0.1:8443");
}

TEST(Discovery, ANameThatCannotBeResolvedIsAnError) {
  const auto source =
      make_dns_source({"decode", 8000}, std::make_unique<FixedResolver>(std::unexpected("decode: Host not found")));
  EXPECT_EQ(look_at(*source).error(), "decode: Host not found");
}

TEST(Discovery, AFileThatIsNotThereIsAnError) {
  const auto source = make_file_source("/nowhere/workers.yaml");
  EXPECT_NE(look_at(*source).error().find("/nowhere/workers.yaml: No such file"), std::string::npos);
}

// Law: settings that do not go together are named with what was expected.
TEST(Discovery, SettingsAreChecked) {
  EXPECT_FALSE(problem_of({}));
  EXPECT_FALSE(problem_of({.source = "dns", .file = "", .dns_name = "decode.svc:8000"}));
  EXPECT_EQ(problem_of({.source = "dns", .file = "", .dns_name = "decode.svc"}),
            "dns_name = 'decode.svc': expected host:port, as source is dns");
  EXPECT_EQ(problem_of({.source = "file", .file = "", .dns_name = ""}),
            "file = '': expected the path of a file, as source is file");
}

}  // namespace
}  // namespace balanceroute::proxy
