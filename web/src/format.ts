// format.ts - numbers as people read them.

const PREFIXES = ['', 'k', 'M', 'G', 'T'] as const;
const THIN = '\u202f'; // narrow no-break space, between a number and its unit

// Three digits and a prefix: 950, 1.23 k, 45.7 k, 1.20 M.
export function compact(value: number): string {
  let size = Math.abs(value);
  let prefix = 0;
  while (size >= 999.5 && prefix < PREFIXES.length - 1) {
    size /= 1000;
    ++prefix;
  }
  if (prefix === 0) return String(Number.isInteger(value) ? value : Number(value.toPrecision(3)));
  const digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return `${value < 0 ? '\u2212' : ''}${size.toFixed(digits)}${THIN}${PREFIXES[prefix]}`;
}

// Every digit, in groups of three.
export function whole(value: number): string {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, THIN).replace('-', '\u2212');
}

// 0.1234 -> "12.3".
export function percent(fraction: number): string {
  return (100 * fraction).toFixed(1);
}

// Milliseconds as a number and a unit that suits it.
export function milliseconds(ms: number): [string, string] {
  if (ms >= 120_000) return [(ms / 60_000).toFixed(1), 'min'];
  if (ms >= 1000) return [(ms / 1000).toFixed(ms >= 10_000 ? 1 : 2), 's'];
  return [ms >= 100 ? ms.toFixed(0) : ms.toFixed(1), 'ms'];
}

export const withUnit = ([number, unit]: readonly [string, string]): string => `${number}${THIN}${unit}`;

// How long ago, in words short enough for a table.
export function ago(seconds: number): string {
  if (seconds < 10) return `${Math.max(seconds, 0).toFixed(1)}${THIN}s`;
  if (seconds < 120) return `${Math.round(seconds)}${THIN}s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)}${THIN}min`;
  return `${Math.round(seconds / 3600)}${THIN}h`;
}

// A score of any size: its sign and four digits.
export function score(value: number): string {
  if (value === 0) return '0';
  const text = Math.abs(value) >= 1000 ? compact(value) : String(Number(value.toPrecision(4)));
  return text.replace('-', '\u2212');
}

// Round values from 0 to at least `most`, at most `count` steps apart.
export function niceTicks(most: number, count: number): number[] {
  if (!(most > 0)) return [0, 1];
  const rough = most / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9)) ?? 10);
  const ticks: number[] = [];
  for (let i = 0; ; ++i) {
    ticks.push(Number((i * step).toPrecision(12)));
    if (i * step >= most * (1 - 1e-9)) return ticks;
  }
}

// The top of an axis that shows `most`: grows at once, and shrinks only when little of it is used, so that it is calm.
export function calmTop(before: number, most: number, count: number): number {
  const wanted = niceTicks(most, count).at(-1) ?? 1;
  return wanted > before || most < 0.5 * before ? wanted : before;
}
