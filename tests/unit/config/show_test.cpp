#include "config/show.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/config/example_params.hpp"

namespace balanceroute {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Show, WritesValuesWithTheirOrigins) {
  example::Params params;
  params.limits.timeout_ms = 0.25;
  params.fleets = {{.name = "main", .aliases = {"a", "8"}, .workers = {{.url = "http://a:1"}, {.url = "http://b:1"}}}};
  const Origins origins{{"limits.timeout_ms", "flag --limits-timeout-ms"},
                        {"fleets", "r.yaml:2"},
                        {"fleets[0].name", "r.yaml:3"},
                        {"fleets[0].workers[1].url", "odd\nname.yaml:9"}};
  EXPECT_EQ(to_yaml(params, origins),
            R"(listen: "127.0.0.1:8080"  # default
token: ""  # default
limits:
  body_bytes: 1024  # default
  timeout_ms: 0.25  # flag --limits-timeout-ms
  strict: true  # default
fleets:  # r.yaml:2
  - name: main  # r.yaml:3
    aliases: [a, "8"]  # default
    policy:
      order: load  # default
      r_max: 4  # default
      threshold: auto  # default
    workers:  # default
      - url: http://a:1  # default
        start_rank: 0  # default
      - url: http://b:1  # odd?name.yaml:9
        start_rank: 0  # default
)");
}

TEST(Show, HidesSecrets) {
  example::Params params;
  params.token = "hunter2";
  const std::string text = to_yaml(params, {{"token", "environment BALANCEROUTE_TOKEN"}});
  EXPECT_THAT(text, HasSubstr("\n# token is set  # environment BALANCEROUTE_TOKEN\n"));
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
}

// Law: the reference has a row for every setting, also for those of list entries.
TEST(Show, ReferenceHasEverySetting) {
  example::Params defaults;
  defaults.token = "hunter2";
  EXPECT_EQ(to_reference(defaults), R"(| setting | type | expected | default | meaning |
|---|---|---|---|---|
| `listen` | text | | `127.0.0.1:8080` | Where clients connect. |
| `token` | text | | none | The admin's password. |
| `limits` | section | | | Bounds of a request. |
| `limits.body_bytes` | integer | 1..1000000 | `1024` | Largest body. |
| `limits.timeout_ms` | number | 0..60000 | `250` | Longest wait. |
| `limits.strict` | flag | | `true` | Whether unknown members are refused. |
| `fleets` | list of sections | | [] | What is routed to. |
| `fleets[].name` | text | | required | The fleet's name. |
| `fleets[].aliases` | list of texts | | [] | Other names. |
| `fleets[].policy` | section | | | The policy. |
| `fleets[].policy.order` | choice | one of load, capacity | `load` | Who chooses first. |
| `fleets[].policy.r_max` | integer | 1..64 | `4` | Requests looked at. |
| `fleets[].policy.threshold` | integer | 0..1000 or auto | `auto` | Free slots above which requests are placed one at a time. |
| `fleets[].workers` | list of sections | at least one | required | The workers. |
| `fleets[].workers[].url` | text | | required | Where the worker listens. |
| `fleets[].workers[].start_rank` | integer | 0..65535 | `0` | First rank. |
)");
}

}  // namespace
}  // namespace balanceroute
