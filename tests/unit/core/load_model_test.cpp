#include "core/load_model.hpp"

#include <gtest/gtest.h>

namespace balanceroute {
namespace {

// Law: tokens are read one by one, blocks whole, and of a full window nothing is added.
TEST(LoadModel, EachCountsAsItsNameSays) {
  EXPECT_EQ(LoadModel{}.weight_of(Tokens{100}), Tokens{100});
  EXPECT_EQ(LoadModel::paged(Tokens{16}).weight_of(Tokens{0}), Tokens{0});
  EXPECT_EQ(LoadModel::paged(Tokens{16}).weight_of(Tokens{16}), Tokens{16});
  EXPECT_EQ(LoadModel::paged(Tokens{16}).weight_of(Tokens{17}), Tokens{32});
  EXPECT_EQ(LoadModel::windowed(Tokens{50}).weight_of(Tokens{50}), Tokens{50});
  EXPECT_EQ(LoadModel::windowed(Tokens{50}).weight_of(Tokens{5000}), Tokens{50});
  EXPECT_EQ(LoadModel::affine(2, Tokens{7}).weight_of(Tokens{100}), Tokens{207});
}

// Law: of one full layer in six, a sixth of what is beyond the window is read, rounded down.
TEST(LoadModel, FullLayersReadBeyondTheWindow) {
  const LoadModel hybrid = LoadModel::windowed(Tokens{50}, 6);
  EXPECT_EQ(hybrid.weight_of(Tokens{50}), Tokens{50});
  EXPECT_EQ(hybrid.weight_of(Tokens{55}), Tokens{50});
  EXPECT_EQ(hybrid.weight_of(Tokens{56}), Tokens{51});
  EXPECT_EQ(hybrid.weight_of(Tokens{50 + 600}), Tokens{150});
  EXPECT_EQ(LoadModel::windowed(Tokens{50}, 1).weight_of(Tokens{5000}), Tokens{5000});
}

// Law: all sequences of a request weigh the same, their common prompt each time.
TEST(LoadModel, SequencesCountEach) {
  const Request request{.id = RequestId{1}, .prompt = Tokens{20}, .generated = Tokens{4}, .sequences = 3};
  EXPECT_EQ(LoadModel{}.weight_on_entry(request), Tokens{72});
  EXPECT_EQ(LoadModel::paged(Tokens{16}).weight_at(request, Tokens{13}), Tokens{3 * 48});
}

}  // namespace
}  // namespace balanceroute
