// lines.ts - lines over the last minutes: uPlot with the page's colours, a unit on the axis and a legend that is text.
import uPlot from 'uplot';
import { compact } from '../format.ts';
import { el, setText } from '../dom.ts';
import { colours, onTheme, type Palette } from '../theme.ts';

export interface Line {
  label: string;
  colour: (palette: Palette) => string;
  width?: number;
  dash?: number[];
  legend?: boolean; // true unless said otherwise
}

export interface LineChartOptions {
  title: string;
  unit: string;
  height: number;
  value?: (value: number) => string; // in the legend and on the axis
  fromZero?: boolean;
}

const SYNC = uPlot.sync('time');

export class LineChart {
  readonly root: HTMLElement;
  private readonly options: LineChartOptions;
  private readonly plot = el('div', { class: 'plot' });
  private readonly legend = el('ul', { class: 'legend' });
  private lines: Line[] = [];
  private values: HTMLElement[] = [];
  private chart: uPlot | null = null;
  private data: uPlot.AlignedData = [[]];

  constructor(options: LineChartOptions) {
    this.options = options;
    this.root = el('figure', { class: 'chart lines' }, el('figcaption', {}, options.title), this.plot, this.legend);
    new ResizeObserver(() => this.fit()).observe(this.plot);
    onTheme(() => this.build());
  }

  // `times` are seconds, at most 0: before now. Other lines than before rebuild the chart.
  show(times: number[], lines: Line[], columns: (number | null)[][]): void {
    this.data = [times, ...columns] as uPlot.AlignedData;
    const same = lines.length === this.lines.length && lines.every((line, i) => line.label === this.lines[i]?.label);
    this.lines = lines;
    if (!same || !this.chart) this.build();
    this.chart?.setData(this.data);
    this.write(this.chart?.cursor.idx ?? null);
  }

  private format(value: number | null | undefined): string {
    if (value === null || value === undefined) return '–';
    return (this.options.value ?? compact)(value);
  }

  // The values under the cursor, or the last ones.
  private write(index: number | null): void {
    const at = index ?? (this.data[0]?.length ?? 0) - 1;
    let v = 0;
    this.lines.forEach((line, i) => {
      if (line.legend === false) return;
      const element = this.values[v++];
      if (element) setText(element, this.format(this.data[i + 1]?.[at] as number | null | undefined));
    });
  }

  private fit(): void {
    if (!this.chart) {
      this.build();
    } else if (this.plot.clientWidth > 0) {
      this.chart.setSize({ width: this.plot.clientWidth, height: this.options.height });
    }
  }

  private build(): void {
    this.chart?.destroy();
    this.chart = null;
    if (this.plot.clientWidth === 0 || this.lines.length === 0) return;
    const ink = colours();
    const axis: uPlot.Axis = {
      stroke: ink.muted,
      grid: { stroke: ink.grid, width: 1 },
      ticks: { stroke: ink.grid, width: 1, size: 4 },
      font: '11px system-ui, sans-serif',
      labelFont: '11px system-ui, sans-serif',
      labelSize: 16,
    };
    this.chart = new uPlot(
      {
        width: this.plot.clientWidth,
        height: this.options.height,
        legend: { show: false },
        cursor: { sync: { key: SYNC.key }, y: false, points: { size: 6 } },
        hooks: { setCursor: [(chart) => this.write(chart.cursor.idx ?? null)] },
        scales: {
          x: { time: false },
          y: { range: (_, low, high) => this.range(low, high) },
        },
        axes: [
          { ...axis, label: 'seconds ago', size: 26, values: (_, at) => at.map((s) => (s === 0 ? 'now' : String(-s))) },
          { ...axis, label: this.options.unit, size: 50, values: (_, at) => at.map((v) => this.format(v)) },
        ],
        series: [
          {},
          ...this.lines.map((line) => ({
            label: line.label,
            stroke: line.colour(ink),
            width: line.width ?? 1.5,
            ...(line.dash ? { dash: line.dash } : {}),
            points: { show: false },
            spanGaps: true,
          })),
        ],
      },
      this.data,
      this.plot,
    );
    this.writeLegend(ink);
  }

  private writeLegend(ink: Palette): void {
    this.values = [];
    this.legend.replaceChildren(
      ...this.lines
        .filter((line) => line.legend !== false)
        .map((line) => {
          const value = el('b');
          this.values.push(value);
          const swatch = el('i', { class: line.dash ? 'swatch dashed' : 'swatch' });
          swatch.style.setProperty('--swatch', line.colour(ink));
          return el('li', {}, swatch, line.label, ' ', value);
        }),
    );
    this.write(null);
  }

  private range(low: number, high: number): [number, number] {
    if (!Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
    const bottom = this.options.fromZero === false ? low : Math.min(0, low);
    const room = (high - bottom) * 0.06 || 1;
    return [bottom === 0 ? 0 : bottom - room, high + room];
  }
}
