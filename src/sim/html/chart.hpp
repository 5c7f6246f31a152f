// chart.hpp - line charts as HTML and inline SVG, without scripts.
//
// Only the lines are SVG, stretched to the width there is; titles, ticks and legend are text of the page, so that they
// keep their size on a phone and are read aloud.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace balanceroute::sim::html {

struct ChartPoint {
  double x = 0;
  double y = 0;
  double half_width = 0;  // of the interval about y; 0: none is drawn
};

// Line joins points by rising x.
struct Line {
  std::string name;   // in the legend and when pointed at; empty: neither
  std::string style;  // class of the style sheet
  std::vector<ChartPoint> points;
  bool dots = false;  // marks each point
};

// Band fills what lies between two lines of equally many points.
struct Band {
  std::string style;
  std::vector<ChartPoint> lower;
  std::vector<ChartPoint> upper;
};

// Scale is the range of one axis and where its ticks are.
struct Scale {
  double low = 0;
  double high = 1;
  std::vector<double> ticks;
  bool logarithmic = false;

  // Where a value lies, from 0 at `low` to 1 at `high`.
  [[nodiscard]] double place(double value) const;
};

// A range of round numbers about the values, with few ticks at round steps; from 0 if that costs little of it.
[[nodiscard]] Scale round_scale(double low, double high);
// From 0 to `longest`, with ticks at round steps.
[[nodiscard]] Scale time_scale(double longest);
// Ticks at the very values, which are few; logarithmic if they are wide apart.
[[nodiscard]] Scale scale_of_values(std::span<const double> values);

struct LineChart {
  std::string title;
  std::string description;  // what is to be seen, for who cannot see it
  std::string x_title;      // with its unit
  std::string y_title;
  Scale x;
  Scale y;
  std::vector<Band> bands;
  std::vector<Line> lines;

  [[nodiscard]] std::string html() const;
};

// The lines' names by their looks.
[[nodiscard]] std::string legend(std::span<const Line> lines);

}  // namespace balanceroute::sim::html
