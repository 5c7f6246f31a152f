// reference_section.cpp - settings of the runs, what the words mean, and the looks that all sections share.
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "sim/html/markup.hpp"
#include "sim/html/sections.hpp"
#include "sim/settings.hpp"

namespace balanceroute::sim::html {
namespace {

struct Word {
  std::string_view word;
  std::string_view meaning;
};

constexpr std::array kWords{
    Word{"load of a worker", "tokens that it reads in a step: prompts and what has been generated, of all it runs"},
    Word{"load (of a run)", "rate of arrivals over what always full, perfectly even workers finish"},
    Word{"worker time lost at the barrier",
         "share of all workers' time spent waiting for the most loaded one, by the modelled step time"},
    Word{"load idle", "the same in tokens, without the fixed part of a step"},
    Word{"bound", "throughput had every step lasted as its mean load needs; the share of it is what was reached"},
    Word{"spread", "largest less smallest load of a step, mean over steps"},
    Word{"imbalance", "workers times the largest load, less the sum of loads"},
    Word{"TPOT", "time per output token after the first"},
    Word{"TTFT", "time from arrival to the first decoded token"},
    Word{"wait", "time from arrival, or from the end of prefill, to a worker"},
    Word{"± ", "half of a 95 % interval over seeds; of changes, of the paired difference on the same requests"},
    Word{"energy", "by a published power model (100 W idle, 400 W busy), not a measurement"},
};

std::string words() {
  std::string text = "<dl>\n";
  for (const Word& word : kWords) text += fmt::format("<dt>{}</dt><dd>{}</dd>\n", word.word, word.meaning);
  return text + "</dl>\n";
}

std::string settings(const Experiment& experiment) {
  std::string text;
  for (const Variant& variant : experiment.variants()) {
    text += fmt::format("<h4>{}</h4>\n<pre tabindex=\"0\"><code>{}</code></pre>\n", escaped(variant.label),
                        escaped(settings_of(experiment.params(), variant.policy).dump(2)));
  }
  return text;
}

std::string value_text(const std::string& mean, const std::string& half_width) {
  return half_width.empty() ? mean : fmt::format("{} <span class=\"pm\">± {}</span>", mean, half_width);
}

}  // namespace

std::string style_of(std::size_t variant) {
  constexpr std::size_t kColours = 8;
  constexpr std::size_t kDashes = 4;
  return fmt::format("v{} d{}", variant % kColours, variant / kColours % kDashes);
}

std::string change_text(const MeanInterval& change) {
  return value_text(fmt::format("{:+.2f}", change.mean),
                    change.half_width ? fmt::format("{:.2f}", *change.half_width) : "");
}

std::string interval_text(const MeanInterval& value) {
  return value_text(short_number(value.mean), value.half_width ? short_number(*value.half_width) : "");
}

std::string reference_section(const Experiment& experiment) {
  return "<section><h2>Words and settings</h2>\n" + details("What the words mean", words()) +
         details("Settings of each policy's runs", settings(experiment)) + "</section>\n";
}

}  // namespace balanceroute::sim::html
