#include "sim/html/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/html/markup.hpp"

namespace balanceroute::sim::html {
namespace {

// The SVG's own units, from corner to corner.
constexpr double kWidth = 1000;
constexpr double kHeight = 500;

// A round number about a fifth of the span: 1, 2 or 5 times a power of ten.
double round_step(double span) {
  const double rough = span / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power) return factor * power;
  }
  return 10 * power;
}

// A scale's places turned into the SVG's units.
class Canvas {
 public:
  Canvas(const Scale& x, const Scale& y) : x_{x}, y_{y} {}

  [[nodiscard]] long x(double value) const { return std::lround(kWidth * x_.place(value)); }
  [[nodiscard]] long y(double value) const { return std::lround(kHeight * (1 - y_.place(value))); }

  // "M0 500l3 -2": the first point, then what each adds to the one before.
  [[nodiscard]] std::string path(std::span<const ChartPoint> points) const {
    std::string text;
    long last_x = 0;
    long last_y = 0;
    for (const ChartPoint& point : points) {
      const long to_x = x(point.x);
      const long to_y = y(point.y);
      text +=
          text.empty() ? fmt::format("M{} {}l0 0", to_x, to_y) : fmt::format(" {} {}", to_x - last_x, to_y - last_y);
      last_x = to_x;
      last_y = to_y;
    }
    return text;
  }

 private:
  const Scale& x_;
  const Scale& y_;
};

std::string titled(const std::string& name) {
  return name.empty() ? "" : fmt::format("<title>{}</title>", escaped(name));
}

std::string draw(const Canvas& canvas, const Line& line) {
  std::string text = fmt::format("<path class=\"line {}\" d=\"{}\">{}</path>\n", line.style, canvas.path(line.points),
                                 titled(line.name));
  for (const ChartPoint& point : line.points) {
    if (point.half_width > 0) {
      text += fmt::format("<path class=\"interval {}\" d=\"M{} {}V{}\"/>", line.style, canvas.x(point.x),
                          canvas.y(point.y - point.half_width), canvas.y(point.y + point.half_width));
    }
    if (line.dots) {
      text += fmt::format("<path class=\"dot {}\" d=\"M{} {}h0\">{}</path>\n", line.style, canvas.x(point.x),
                          canvas.y(point.y),
                          titled(line.name + ": " + short_number(point.y) +
                                 (point.half_width > 0 ? " ± " + short_number(point.half_width) : "")));
    }
  }
  return text;
}

std::string draw(const Canvas& canvas, const Band& band) {
  std::vector<ChartPoint> around = band.upper;
  around.insert(around.end(), band.lower.rbegin(), band.lower.rend());
  return fmt::format("<path class=\"band {}\" d=\"{}z\"/>\n", band.style, canvas.path(around));
}

std::string grid(const Canvas& canvas, const LineChart& chart) {
  std::string path;
  for (const double tick : chart.y.ticks) path += fmt::format("M0 {}H{}", canvas.y(tick), kWidth);
  for (const double tick : chart.x.ticks) path += fmt::format("M{} 0V{}", canvas.x(tick), kHeight);
  return fmt::format("<path class=\"grid\" d=\"{}\"/>\n", path);
}

std::string tick_labels(const Scale& scale, std::string_view side) {
  std::string text;
  for (const double tick : scale.ticks) {
    text += fmt::format("<span style=\"{}:{:.1f}%\">{}</span>", side, 100 * scale.place(tick), short_number(tick));
  }
  return text;
}

std::string drawing(const LineChart& chart) {
  const Canvas canvas{chart.x, chart.y};
  std::string text =
      fmt::format("<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">\n", kWidth,
                  kHeight, escaped(chart.title + ". " + chart.description));
  text += grid(canvas, chart);
  for (const Band& band : chart.bands) text += draw(canvas, band);
  for (const Line& line : chart.lines) text += draw(canvas, line);
  return text + "</svg>";
}

}  // namespace

double Scale::place(double value) const {
  if (logarithmic) return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
  return (value - low) / (high - low);
}

Scale round_scale(double low, double high) {
  if (low >= 0 && low < 0.4 * high) low = 0;
  if (high <= low) high = low + std::max(1.0, std::abs(low) / 10);
  const double step = round_step(high - low);
  Scale scale{.low = step * std::floor(low / step), .high = step * std::ceil(high / step), .ticks = {}};
  const auto count = std::lround((scale.high - scale.low) / step);
  for (long i = 0; i <= count; ++i) scale.ticks.push_back(scale.low + static_cast<double>(i) * step);
  return scale;
}

Scale time_scale(double longest) {
  Scale scale = round_scale(0, longest);
  if (longest <= 0) return scale;
  scale.high = longest;
  std::erase_if(scale.ticks, [longest](double tick) { return tick > longest; });
  return scale;
}

Scale scale_of_values(std::span<const double> values) {
  Scale scale{.low = std::ranges::min(values), .high = std::ranges::max(values), .ticks = {}};
  scale.ticks.assign(values.begin(), values.end());
  std::ranges::sort(scale.ticks);
  scale.ticks.erase(std::ranges::unique(scale.ticks).begin(), scale.ticks.end());
  scale.logarithmic = scale.low > 0 && scale.high / scale.low > 3;
  if (scale.high <= scale.low) {
    scale.low -= 1;
    scale.high += 1;
  }
  return scale;
}

std::string LineChart::html() const {
  return fmt::format(
      "<figure class=\"chart\"><figcaption>{}</figcaption>\n<div class=\"y-title\">{}</div>\n"
      "<div class=\"plot\"><div class=\"y\" aria-hidden=\"true\">{}</div>\n{}\n"
      "<div class=\"x\" aria-hidden=\"true\">{}</div></div>\n<div class=\"x-title\">{}</div></figure>\n",
      escaped(title), escaped(y_title), tick_labels(y, "bottom"), drawing(*this), tick_labels(x, "left"),
      escaped(x_title));
}

std::string legend(std::span<const Line> lines) {
  std::string text = "<ul class=\"legend\">";
  for (const Line& line : lines) {
    if (line.name.empty()) continue;
    text += fmt::format(
        "<li><svg viewBox=\"0 0 24 10\" aria-hidden=\"true\"><path class=\"line {}\" d=\"M0 5H24\"/></svg>{}</li>",
        line.style, escaped(line.name));
  }
  return text + "</ul>\n";
}

}  // namespace balanceroute::sim::html
