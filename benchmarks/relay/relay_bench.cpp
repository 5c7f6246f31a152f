// relay_bench.cpp - what the router costs a relayed event, beside the least that any relay costs.
//
// The same engines, clients, events and interleaving run in turn: directly, through a bare relay of bytes (the floor),
// through the router, and through any other relay that is named. CPU time is the relay's process's alone; latency is
// from an engine's write to the client's read. Rounds of all relays are repeated and medians shown, so that what else
// the machine does strikes all alike.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>

#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "relay/child.hpp"
#include "relay/event_source.hpp"
#include "relay/floor_relay.hpp"
#include "relay/stream_load.hpp"

namespace balanceroute::relay_bench {
namespace {

using Seconds = std::chrono::duration<double>;

struct Options {
  std::size_t streams = 512;
  double step_ms = 20;
  std::int64_t tokens = 400;
  double seconds = 8;
  int repeats = 3;
  std::string router = "build/release/bin/balanceroute";
  std::vector<std::string> peers;  // NAME=COMMAND
  std::string json;
};

// Measured is one relay's window.
struct Measured {
  double cpu_us_per_event = 0;
  double p50_us = 0;
  double p99_us = 0;
  double events_per_s = 0;
  std::int64_t resident_kib = 0;
  std::size_t broken = 0;
};

// A relay that can be started before the engines given.
struct Contender {
  std::string name;
  // The port that clients use, and the process behind it (none: the engine itself).
  struct Running {
    std::uint16_t port;
    std::unique_ptr<Child> child;
  };
  std::function<Running(const std::vector<std::uint16_t>& engines)> start;
};

std::uint16_t free_port() {
  return port_of(listen_on_loopback());
}

void wait_until_it_listens(std::uint16_t port) {
  for (int tries = 0; tries < 3000; ++tries) {
    const Descriptor socket = connect_to(port);
    if (write_all(socket, "GET /health HTTP/1.1\r\nHost: bench\r\n\r\n")) {
      std::string answer;
      for (int reads = 0; reads < 50 && read_into(socket, answer); ++reads) {
        if (answer.starts_with("HTTP/1.1 200")) return;
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  give_up(fmt::format("nothing answers GET /health at port {}", port));
}

Contender direct() {
  return {"direct", [](const auto& engines) { return Contender::Running{engines.front(), nullptr}; }};
}

Contender floor() {
  return {"floor", [](const std::vector<std::uint16_t>& engines) {
            std::array<int, 2> pipe{};
            if (::pipe(pipe.data()) != 0) give_up("pipe");
            auto child = std::make_unique<Child>([&] { run_floor_relay(pipe[1], engines); });
            ::close(pipe[1]);
            std::array<char, 16> text{};
            if (::read(pipe[0], text.data(), text.size() - 1) <= 0) give_up("read");
            ::close(pipe[0]);
            return Contender::Running{static_cast<std::uint16_t>(std::stoi(text.data())), std::move(child)};
          }};
}

Contender router(const Options& options, const std::string& name, const std::string& settings) {
  return {name, [options, name, settings](const std::vector<std::uint16_t>& engines) {
            const std::uint16_t port = free_port();
            const std::filesystem::path folder = std::filesystem::temp_directory_path();
            const std::string config = folder / fmt::format("{}-{}.yaml", name, ::getpid());
            std::ofstream yaml{config};
            yaml << fmt::format(
                "listen: 127.0.0.1:{}\nadmin: {{listen: \"127.0.0.1:{}\"}}\nfleets:\n  - name: bench\n"
                "    models: [{{name: bench}}]\n    dialect: aggregated\n{}    groups:\n"
                "      - name: g\n        slots: {}\n        workers:\n",
                port, free_port(), settings, options.streams);
            for (const std::uint16_t engine : engines) {
              yaml << fmt::format("          - {{url: \"http://127.0.0.1:{}\", ranks: 1}}\n", engine);
            }
            yaml.close();
            const std::vector<std::string> command{options.router, "serve", "--config", config};
            auto child = std::make_unique<Child>(command, config + ".log");
            wait_until_it_listens(port);
            return Contender::Running{port, std::move(child)};
          }};
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// `NAME=COMMAND`, where {port} stands for the port to listen on and {urls} for the engines' addresses.
Contender peer(const std::string& named) {
  const std::size_t equals = named.find('=');
  const std::string name = named.substr(0, equals);
  const std::string command = named.substr(equals + 1);
  return {name, [name, command](const std::vector<std::uint16_t>& engines) {
            const std::uint16_t port = free_port();
            std::string urls;
            for (const std::uint16_t engine : engines) urls += fmt::format(" http://127.0.0.1:{}", engine);
            const std::string line = replaced(replaced(command, "{port}", std::to_string(port)), "{urls}", urls);
            const std::string log = std::filesystem::temp_directory_path() / (name + ".log");
            auto child = std::make_unique<Child>(std::vector<std::string>{"/bin/sh", "-c", "exec " + line}, log);
            wait_until_it_listens(port);
            return Contender::Running{port, std::move(child)};
          }};
}

double quantile(std::vector<std::int64_t>& sorted, double q) {
  if (sorted.empty()) return 0;
  return static_cast<double>(sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))]);
}

Measured measure(const Contender& contender, const Options& options) {
  const auto step = std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds{options.step_ms / 1000});
  EventSource engines{{.ports = 8, .step = step, .tokens = options.tokens}};
  const Contender::Running running = contender.start(engines.ports());
  StreamLoad load{running.port, options.streams};
  for (int waits = 0; load.open() < options.streams; ++waits) {
    if (waits == 6000) give_up(fmt::format("{}: {} of {} streams began", contender.name, load.open(), options.streams));
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  std::this_thread::sleep_for(Seconds{1});
  static_cast<void>(load.take_latencies());
  const auto cpu = [&] { return running.child ? running.child->cpu_time() : std::chrono::nanoseconds{0}; };
  const auto before = cpu();
  std::this_thread::sleep_for(Seconds{options.seconds});
  std::vector<std::int64_t> latencies = load.take_latencies();
  const Seconds spent = cpu() - before;
  std::ranges::sort(latencies);
  const auto events = static_cast<double>(latencies.size());
  return {.cpu_us_per_event = spent.count() * 1e6 / events,
          .p50_us = quantile(latencies, 0.5) / 1e3,
          .p99_us = quantile(latencies, 0.99) / 1e3,
          .events_per_s = events / options.seconds,
          .resident_kib = running.child ? running.child->resident_kib() : 0,
          .broken = load.broken()};
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

Measured median(const std::vector<Measured>& all) {
  Measured middle = all.back();
  for (double Measured::* member :
       {&Measured::cpu_us_per_event, &Measured::p50_us, &Measured::p99_us, &Measured::events_per_s}) {
    std::vector<double> values;
    for (const Measured& one : all) values.push_back(one.*member);
    middle.*member = median(values);
  }
  return middle;
}

// What a relay adds to the direct way, as a multiple of what the floor adds.
double added(double value, double direct, double floor) {
  return (value - direct) / (floor - direct);
}

void report(const std::vector<std::string>& names, const std::vector<Measured>& figures, const Options& options) {
  const Measured& direct = figures[0];
  const Measured& floor = figures[1];
  std::cout << fmt::format("{:<22} {:>12} {:>8} {:>9} {:>9} {:>11} {:>11} {:>10} {:>9} {:>7}\n", "relay",
                           "CPU us/event", "x floor", "P50 us", "P99 us", "P50 x floor", "P99 x floor", "events/s",
                           "RSS MiB", "broken");
  nlohmann::json runs = nlohmann::json::array();
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const Measured& one = figures[i];
    const double times = one.cpu_us_per_event / floor.cpu_us_per_event;
    const double p50 = added(one.p50_us, direct.p50_us, floor.p50_us);
    const double p99 = added(one.p99_us, direct.p99_us, floor.p99_us);
    std::cout << fmt::format(
        "{:<22} {:>12.2f} {:>8.2f} {:>9.0f} {:>9.0f} {:>11.2f} {:>11.2f} {:>10.0f} {:>9.1f} {:>7}\n", names[i],
        one.cpu_us_per_event, times, one.p50_us, one.p99_us, p50, p99, one.events_per_s,
        static_cast<double>(one.resident_kib) / 1024, one.broken);
    runs.push_back({{"relay", names[i]},
                    {"cpu_us_per_event", one.cpu_us_per_event},
                    {"cpu_times_floor", times},
                    {"latency_us", {{"p50", one.p50_us}, {"p99", one.p99_us}}},
                    {"added_latency_times_floor", {{"p50", p50}, {"p99", p99}}},
                    {"events_per_s", one.events_per_s},
                    {"resident_kib", one.resident_kib},
                    {"broken_streams", one.broken}});
  }
  if (!options.json.empty()) std::ofstream{options.json} << runs.dump(1) << "\n";
}

int run(const Options& options) {
  std::vector<Contender> contenders{direct(), floor(), router(options, "balanceroute", ""),
                                    router(options, "balanceroute-usage", "    token_progress: usage\n")};
  for (const std::string& named : options.peers) contenders.push_back(peer(named));
  std::vector<std::vector<Measured>> rounds(contenders.size());
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      rounds[i].push_back(measure(contenders[i], options));
      std::cerr << fmt::format("round {}, {}: {:.2f} us\n", repeat + 1, contenders[i].name,
                               rounds[i].back().cpu_us_per_event);
    }
  }
  std::vector<std::string> names;
  std::vector<Measured> figures;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    names.push_back(contenders[i].name);
    figures.push_back(median(rounds[i]));
  }
  report(names, figures, options);
  return 0;
}

}  // namespace
}  // namespace balanceroute::relay_bench

int main(int argc, char** argv) {
  balanceroute::relay_bench::Options options;
  CLI::App app{"CPU time and latency of relayed events: directly, by a bare relay, by the router, by others."};
  app.add_option("--streams", options.streams, "streams at once")->capture_default_str();
  app.add_option("--step-ms", options.step_ms, "between two events of a stream")->capture_default_str();
  app.add_option("--tokens", options.tokens, "events of an answer")->capture_default_str();
  app.add_option("--seconds", options.seconds, "of a measurement")->capture_default_str();
  app.add_option("--repeats", options.repeats, "of all measurements in turn; medians are shown")->capture_default_str();
  app.add_option("--router", options.router, "balanceroute")->capture_default_str();
  app.add_option("--peer", options.peers, "NAME=COMMAND, with {port} and {urls}");
  app.add_option("--json", options.json, "file for the figures");
  CLI11_PARSE(app, argc, argv);
  return balanceroute::relay_bench::run(options);
}
