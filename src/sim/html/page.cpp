#include "sim/html/page.hpp"

#include <fmt/format.h>

#include "sim/html/markup.hpp"

namespace balanceroute::sim::html {
namespace {

// Lines are told apart by colour and dashes: v0, v1, ... of variants. The colours are those of Okabe and Ito, which are
// distinct for every kind of colour vision, darkened or lightened to the background.
constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --text: #1d2127; --soft: #59626d; --rule: #d9dde2; --paper: #fff; --shade: #f4f6f8;
  --accent: #b3470a; --worker: #5d7186;
  --c0: #0072b2; --c1: #c24a00; --c2: #00795a; --c3: #a8407e; --c4: #8a6d00; --c5: #2f8fc4; --c6: #6a4fb3; --c7: #4c4c4c;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e9ed; --soft: #a3adb9; --rule: #3a424c; --paper: #14181d;
  --shade: #1c2229; --accent: #ff9d5c; --worker: #8ba2ba;
  --c0: #56b4e9; --c1: #ff9d5c; --c2: #3fd0a6; --c3: #e79bc6; --c4: #f0d34a; --c5: #9fd4f5; --c6: #b9a5f5; --c7: #d0d0d0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem 1rem 4rem; color: var(--text); background: var(--paper); }
h1 { overflow-wrap: anywhere; font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .75rem; padding-top: .75rem; border-top: 2px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .25rem; }
p, ul, dl { max-width: 46rem; }
p { margin: .4rem 0 .8rem; }
.note { color: var(--soft); font-size: .9rem; }
.warning { border-left: 4px solid var(--accent); padding: .4rem .8rem; background: var(--shade); }
nav ul { padding-left: 1.1rem; }
a { color: inherit; }
.scroll { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .35rem; }
caption span { display: inline-block; max-width: calc(100vw - 2rem); }
th, td { text-align: right; padding: .35rem .65rem; border-bottom: 1px solid var(--rule); white-space: nowrap; }
thead th { vertical-align: bottom; white-space: normal; font-weight: 600; min-width: 4.5rem; }
tbody th, thead th:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); }
tbody th { font-weight: 600; }
td.best { font-weight: 700; background: var(--shade); }
td .pm, .pm { color: var(--soft); font-weight: 400; font-size: .82em; }
.bar { display: block; height: .75rem; min-width: 1px; background: var(--accent); }
.bars td:nth-child(odd) { width: 9rem; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1rem 1.75rem; }
.chart { margin: .5rem 0; min-width: 0; }
.chart figcaption { font-weight: 600; }
.y-title, .x-title { color: var(--soft); font-size: .8rem; }
.y-title { padding-bottom: .5rem; }
.x-title { text-align: right; padding-top: 1.35rem; }
.plot { position: relative; margin-left: 3.2rem; margin-right: .75rem; }
.plot svg { display: block; width: 100%; height: 13rem; overflow: visible; }
.y, .x { position: absolute; color: var(--soft); font-size: .75rem; line-height: 1; }
.y { inset: 0 auto 0 -3.2rem; width: 2.8rem; }
.y span { position: absolute; right: 0; transform: translateY(50%); }
.x { inset: 100% 0 auto 0; height: 1.2rem; }
.x span { position: absolute; top: .4rem; transform: translateX(-50%); }
.line, .dot, .interval, .grid { fill: none; vector-effect: non-scaling-stroke; }
.line { stroke: var(--soft); stroke-width: 1.75px; stroke-linejoin: round; }
.dot { stroke-width: 8px; stroke-linecap: round; }
.interval { stroke-width: 1.5px; }
.grid { stroke: var(--rule); stroke-width: 1px; }
.band { stroke: none; }
.waiting { fill: var(--accent); opacity: .18; }
.worker { stroke: var(--worker); stroke-width: 1px; opacity: .7; }
.envelope { stroke: var(--accent); stroke-width: 2px; }
.mean { stroke: var(--text); stroke-width: 1.5px; stroke-dasharray: 5 4; }
.bound { stroke: var(--soft); stroke-dasharray: 2 4; }
.v0 { stroke: var(--c0); } .v1 { stroke: var(--c1); } .v2 { stroke: var(--c2); } .v3 { stroke: var(--c3); }
.v4 { stroke: var(--c4); } .v5 { stroke: var(--c5); } .v6 { stroke: var(--c6); } .v7 { stroke: var(--c7); }
.line.d1 { stroke-dasharray: 7 4; } .line.d2 { stroke-dasharray: 2 3; } .line.d3 { stroke-dasharray: 9 3 2 3; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; margin: .25rem 0 .5rem;
  font-size: .88rem; max-width: none; }
.legend svg { width: 1.8rem; height: .75rem; margin-right: .4rem; vertical-align: middle; }
details { margin: .5rem 0; }
summary { cursor: pointer; color: var(--soft); font-size: .9rem; }
summary:focus-visible, .scroll:focus-visible, a:focus-visible { outline: 2px solid var(--c0); outline-offset: 2px; }
dt { font-weight: 600; margin-top: .6rem; } dd { margin: 0; }
code { font-size: .88em; overflow-wrap: anywhere; }
.map .pm { color: inherit; }
.map td { text-align: center; min-width: 4.6rem; background: color-mix(in srgb, var(--c0) var(--p), var(--paper)); }
.map td.chosen { outline: 3px solid var(--accent); outline-offset: -3px; font-weight: 700; }
@media (max-width: 40rem) { .bars td:nth-child(odd) { width: 4rem; } th, td { padding: .35rem .4rem; } }
@media print { details { display: block; } }
)";

}  // namespace

std::string page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n"
      "<style>{}</style>\n</head>\n<body>\n<main>\n{}</main>\n</body>\n</html>\n",
      escaped(title), kStyle, body);
}

}  // namespace balanceroute::sim::html
