#include "explain/explanation_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

namespace balanceroute::explain {

namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t kBestShown = 3;

std::string name_of(const ExplainedWorker& worker) {
  return fmt::format("{} rank {}", worker.url, worker.rank);
}

std::string name_of(const Explanation& all, std::size_t request) {
  const ExplainedRequest& one = all.requests[request];
  return one.request != RunningState::kUnnamed ? fmt::format("request {}", one.request)
                                               : fmt::format("waiting[{}]", request);
}

// Positions of the workers that could take one more sequence now, the best first.
std::vector<std::size_t> best_workers(const Explanation& all, const ExplainedRequest& request) {
  std::vector<std::size_t> order(all.workers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t w) {
    return !all.workers[w].takes_requests || all.workers[w].free_slots < request.sequences;
  });
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t w) { return request.scores[w]; });
  return order;
}

void write_workers(const Explanation& all, std::back_insert_iterator<std::string> out) {
  fmt::format_to(out, "\n{:<40} {:>10} {:>12} {:>12}\n", "worker", "free slots", "load", "margin");
  for (const ExplainedWorker& worker : all.workers) {
    fmt::format_to(out, "{:<40} {:>10} {:>12} {:>12}{}\n", name_of(worker), worker.free_slots, worker.load.count(),
                   worker.margin.count(), worker.takes_requests ? "" : "  takes no requests");
  }
}

void write_requests(const Explanation& all, std::back_insert_iterator<std::string> out) {
  fmt::format_to(out, "\nScores ({}), the best {} workers with a free slot:\n", all.score_meaning, kBestShown);
  for (std::size_t r = 0; r < all.requests.size(); ++r) {
    const ExplainedRequest& request = all.requests[r];
    fmt::format_to(out, "  {}, {} prompt tokens:", name_of(all, r), request.prompt);
    if (request.refused) {
      fmt::format_to(out, " none ever, as {}\n", *request.refused);
      continue;
    }
    const std::vector<std::size_t> best = best_workers(all, request);
    for (std::size_t i = 0; i < std::min(best.size(), kBestShown); ++i) {
      fmt::format_to(out, "{} {:.6g} on {}", i == 0 ? "" : ",", request.scores[best[i]], name_of(all.workers[best[i]]));
    }
    fmt::format_to(out, "{}\n", best.empty() ? " none has" : "");
  }
}

void write_admissions(const Explanation& all, std::back_insert_iterator<std::string> out) {
  fmt::format_to(out, "\nThe round decides:\n");
  for (const ExplainedAdmission& one : all.admissions) {
    fmt::format_to(out, "  {} on {}: {}, score {:.6g}", name_of(all, one.request), name_of(all.workers[one.worker]),
                   to_string(one.stage), one.score);
    if (one.set_size > 1) fmt::format_to(out, " of {} requests together", one.set_size);
    fmt::format_to(out, ", margin before {}", one.margin.count());
    if (one.runner_up) {
      fmt::format_to(out, "; next best {} with {:.6g}", name_of(all.workers[one.runner_up->worker]),
                     one.runner_up->score);
    }
    fmt::format_to(out, "\n");
  }
  if (all.admissions.empty()) fmt::format_to(out, "  nothing\n");
}

json worker_json(const ExplainedWorker& worker) {
  return {{"group", worker.group},
          {"url", worker.url},
          {"rank", worker.rank},
          {"takes_requests", worker.takes_requests},
          {"free_slots", worker.free_slots},
          {"load_tokens", worker.load.count()},
          {"margin_tokens", worker.margin.count()}};
}

json request_json(const ExplainedRequest& request) {
  json out{{"request", request.request != RunningState::kUnnamed ? json(request.request) : json(nullptr)},
           {"prompt_tokens", request.prompt},
           {"sequences", request.sequences},
           {"scores", request.scores}};
  if (request.refused) out["refused"] = *request.refused;
  return out;
}

json admission_json(const ExplainedAdmission& one) {
  json out{{"waiting", one.request},   {"worker", one.worker}, {"stage", to_string(one.stage)},
           {"set_size", one.set_size}, {"score", one.score},   {"margin_tokens", one.margin.count()}};
  if (one.runner_up) out["runner_up"] = {{"worker", one.runner_up->worker}, {"score", one.runner_up->score}};
  return out;
}

}  // namespace

std::string explanation_text(const Explanation& all) {
  std::string text = fmt::format("Fleet {}, policy {}.", all.fleet, all.policy);
  const auto out = std::back_inserter(text);
  if (all.learns) {
    fmt::format_to(out,
                   " It learns as it goes and has learned nothing here, so a router that has may decide otherwise.");
  }
  fmt::format_to(out, "\n");
  write_workers(all, out);
  write_requests(all, out);
  write_admissions(all, out);
  return text;
}

std::string explanation_json(const Explanation& all) {
  json out{
      {"fleet", all.fleet}, {"policy", all.policy}, {"score_meaning", all.score_meaning}, {"learned", !all.learns}};
  for (const char* list : {"workers", "waiting", "admissions"}) out[list] = json::array();
  for (const ExplainedWorker& worker : all.workers) out["workers"].push_back(worker_json(worker));
  for (const ExplainedRequest& request : all.requests) out["waiting"].push_back(request_json(request));
  for (const ExplainedAdmission& one : all.admissions) out["admissions"].push_back(admission_json(one));
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace balanceroute::explain
