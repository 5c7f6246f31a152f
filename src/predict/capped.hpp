// capped.hpp - a predictor that respects output limits: no answer grows beyond its request's.
#pragma once

#include <memory>

#include "predict/predictor.hpp"

namespace balanceroute {

// Capped asks another predictor how long an answer would be, and ends it at Request::output_limit. It matters where
// clients send limits that answers meet; without them it changes nothing.
//   Cost  as the other's.
class Capped final : public Predictor {
 public:
  explicit Capped(std::unique_ptr<Predictor> inner) : inner_{std::move(inner)} {}

  [[nodiscard]] std::string_view name() const override { return inner_->name(); }
  void ended(const Request& request, Tokens generated, LeaseEnd how) override {
    inner_->ended(request, generated, how);
  }
  [[nodiscard]] bool informed() const override { return inner_->informed(); }
  [[nodiscard]] bool wants_renewal() const override { return inner_->wants_renewal(); }
  void renew(std::span<const LifeSpan> running) override { inner_->renew(running); }
  [[nodiscard]] Prediction predict(const Request& request, Tokens age, Steps horizon) const override;
  void survival(const Request& request, Tokens age, std::span<std::uint32_t> chances) const override;
  [[nodiscard]] KeyHits key_hits() const override { return inner_->key_hits(); }

 private:
  std::unique_ptr<Predictor> inner_;
};

}  // namespace balanceroute
