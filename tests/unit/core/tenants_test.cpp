#include "core/tenants.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace balanceroute {
namespace {

std::string fault(const std::vector<TenantParams>& tenants) {
  return fault_of(tenants).value_or("");
}

// Law: a message names the entry, the setting, its value and what was expected.
TEST(Tenants, RefuseWhatCannotBe) {
  EXPECT_EQ(fault({}), "");
  EXPECT_EQ(fault({{.name = "a"}, {.name = "b", .weight = 1024, .max_sequences = 1, .priority = -1000}}), "");
  EXPECT_EQ(fault({{.name = "a"}, {.name = "b"}, {.name = "a"}}),
            "tenants[2].name = a: expected a name that no other tenant has");
  EXPECT_EQ(fault({{.name = ""}}), "tenants[0].name = \"\": expected a text");
  EXPECT_EQ(fault({{.name = "a"}, {.name = "b", .weight = 0}}), "tenants[1].weight = 0: expected 1..1024");
  EXPECT_EQ(fault({{.name = "a", .max_sequences = -1}}),
            "tenants[0].max_sequences = -1: expected 1..1000000000 or auto");
  EXPECT_EQ(fault({{.name = "a", .priority = 1001}}), "tenants[0].priority = 1001: expected -1000..1000");
}

// Law: a request of a named sender has its tenant and class, any other is the default tenant's; quota and weight are
// those of the settings.
TEST(Tenants, MarkRequestsByTheirSender) {
  Eligibility eligibility;
  const std::vector<TenantParams> settings{{.name = "batch", .max_sequences = 2, .priority = -1},
                                           {.name = "chat", .weight = 3, .priority = 5}};
  const Tenants tenants{settings, [&](const TenantTerms& terms) { return eligibility.add_tenant(terms); }};
  const auto request = [&](std::uint64_t id, std::string_view sender, std::int32_t sequences) {
    Request made{.id = RequestId{id}, .prompt = Tokens{10}, .sequences = sequences};
    tenants.mark(made, sender);
    return made;
  };
  const Request batch = request(1, "batch", 3);
  const Request chat = request(2, "chat", 3);
  const Request other = request(3, "nobody", 3);
  EXPECT_EQ(batch.priority, -1);
  EXPECT_EQ(chat.priority, 5);
  EXPECT_EQ(other.priority, 0);
  EXPECT_EQ(other.tenant, kDefaultTenant);
  EXPECT_EQ(eligibility.obstacle(batch), SubmitError::ExceedsQuota);
  EXPECT_EQ(eligibility.obstacle(chat), std::nullopt);
  EXPECT_EQ(settings[1].terms().weight, 3);
  EXPECT_EQ(settings[1].terms().quota, TenantTerms::kNoQuota);
}

}  // namespace
}  // namespace balanceroute
