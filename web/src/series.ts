// series.ts - columns of numbers over common points in time, the newest kept.

export interface HistoryJson {
  at_s: number[];
  columns: Record<string, (number | null)[]>;
}

export class SeriesTable {
  times: number[] = [];
  private columns = new Map<string, (number | null)[]>();
  private readonly spanS: number;

  // Keeps what is no older than so many seconds.
  constructor(spanS: number) {
    this.spanS = spanS;
  }

  load(history: HistoryJson): void {
    this.times = [...history.at_s];
    this.columns = new Map(Object.entries(history.columns).map(([name, values]) => [name, [...values]]));
  }

  add(atS: number, row: Iterable<readonly [string, number]>): void {
    const before = this.times.length;
    this.times.push(atS);
    for (const [name, value] of row) {
      let column = this.columns.get(name);
      if (!column) {
        column = new Array<number | null>(before).fill(null);
        this.columns.set(name, column);
      }
      column.push(value);
    }
    for (const column of this.columns.values()) if (column.length === before) column.push(null);
    this.trim(atS - this.spanS);
  }

  column(name: string): (number | null)[] {
    return this.columns.get(name) ?? new Array<number | null>(this.times.length).fill(null);
  }

  // What follows `prefix` in the names of columns that have it.
  namesUnder(prefix: string): string[] {
    return [...this.columns.keys()].filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  }

  private trim(oldest: number): void {
    const first = this.times.findIndex((time) => time >= oldest);
    if (first <= 0) return;
    this.times.splice(0, first);
    for (const [name, column] of this.columns) {
      column.splice(0, first);
      if (column.every((value) => value === null)) this.columns.delete(name);
    }
  }
}

// The change a second of a column that counts up, at each point after the first; null where it cannot be told.
export function rates(times: readonly number[], counts: readonly (number | null)[]): (number | null)[] {
  return counts.map((count, i) => {
    const before = counts[i - 1];
    const passed = (times[i] ?? 0) - (times[i - 1] ?? 0);
    if (count === null || before === null || before === undefined || passed <= 0 || count < before) return null;
    return (count - before) / passed;
  });
}
