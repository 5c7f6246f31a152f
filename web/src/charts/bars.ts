// bars.ts - the load of every worker of a group under its envelope, drawn ten times a second.
//
// The light part above a bar is the worker's margin: what it could take without making any step longer.
import { calmTop, compact, niceTicks, whole } from '../format.ts';
import { el, setAttribute, setText } from '../dom.ts';
import { colours, onTheme } from '../theme.ts';

export interface Bar {
  name: string;
  label: string;
  load: number;
  running: number;
  slots: number;
  takesRequests: boolean;
}

const LEFT = 64;
const RIGHT = 12;
const TOP = 22;
const BOTTOM = 38;
const TICKS = 4;

export class LoadBars {
  readonly root: HTMLElement;
  private readonly canvas = el('canvas', { tabindex: '0', role: 'img' });
  private readonly words = el('p', { class: 'chart-words' });
  private bars: Bar[] = [];
  private envelope = 0;
  private top = 0;
  private selected = -1;
  private width = 0;
  private height = 0;

  constructor() {
    this.root = el('div', { class: 'chart bars' }, this.canvas, this.words);
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    this.canvas.addEventListener('pointermove', (event) => this.select(this.barAt(event.offsetX)));
    this.canvas.addEventListener('pointerleave', () => this.select(-1));
    this.canvas.addEventListener('keydown', (event) => this.key(event));
    this.canvas.addEventListener('blur', () => this.select(-1));
    onTheme(() => this.draw());
  }

  show(bars: Bar[], envelope: number): void {
    this.bars = bars;
    this.envelope = envelope;
    this.top = calmTop(this.top, envelope * 1.04, TICKS);
    this.draw();
  }

  private resize(): void {
    const ratio = devicePixelRatio;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.draw();
  }

  private key(event: KeyboardEvent): void {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined || this.bars.length === 0) return;
    event.preventDefault();
    this.select((this.selected + by + this.bars.length) % this.bars.length);
  }

  private barAt(x: number): number {
    const at = Math.floor(((x - LEFT) / (this.width - LEFT - RIGHT)) * this.bars.length);
    return at >= 0 && at < this.bars.length ? at : -1;
  }

  private select(index: number): void {
    if (index === this.selected) return;
    this.selected = index;
    this.draw();
  }

  private describe(): void {
    const one = this.bars[this.selected];
    const most = this.bars.reduce((a, b) => (b.load > a.load ? b : a), this.bars[0] as Bar);
    const least = this.bars.reduce((a, b) => (b.load < a.load ? b : a), this.bars[0] as Bar);
    if (one) {
      const margin = this.envelope - one.load;
      setText(
        this.words,
        `${one.name}: load ${whole(one.load)} tokens, margin ${whole(margin)} tokens, ` +
          `${one.running} of ${one.slots} slots${one.takesRequests ? '' : ', takes no requests'}`,
      );
    } else if (most) {
      setText(
        this.words,
        `Most loaded: ${most.name} (${compact(most.load)} tokens). Least: ${least?.name} (${compact(least?.load ?? 0)} tokens).`,
      );
    } else {
      setText(this.words, 'No worker is at the barrier.');
    }
    setAttribute(this.canvas, 'aria-label', `Load by worker. ${this.words.textContent} Arrow keys tell each worker.`);
  }

  private draw(): void {
    this.describe();
    const context = this.canvas.getContext('2d');
    if (!context || this.width === 0) return;
    const ink = colours();
    const ratio = devicePixelRatio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = '12px system-ui, sans-serif';
    const bottom = this.height - BOTTOM;
    const y = (load: number): number => bottom - (load / this.top) * (bottom - TOP);
    this.drawScale(context, y);
    const room = (this.width - LEFT - RIGHT) / Math.max(this.bars.length, 1);
    const width = Math.max(room - Math.min(room * 0.25, 10), 1);
    const peak = Math.max(...this.bars.map((bar) => bar.load));
    this.bars.forEach((bar, i) => {
      const x = LEFT + i * room + (room - width) / 2;
      context.fillStyle = ink.margin;
      context.fillRect(x, y(this.envelope), width, y(bar.load) - y(this.envelope));
      context.fillStyle = !bar.takesRequests ? ink.drained : bar.load === peak ? ink.peak : ink.load;
      context.fillRect(x, y(bar.load), width, bottom - y(bar.load));
      if (i === this.selected) {
        context.strokeStyle = ink.text;
        context.lineWidth = 2;
        context.strokeRect(x - 1, y(this.envelope) - 1, width + 2, bottom - y(this.envelope) + 1);
      }
    });
    this.drawNames(context, room, bottom);
    context.strokeStyle = ink.envelope;
    context.lineWidth = 2;
    context.setLineDash([6, 4]);
    context.beginPath();
    context.moveTo(LEFT, y(this.envelope));
    context.lineTo(this.width - RIGHT, y(this.envelope));
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = ink.envelope;
    context.textAlign = 'right';
    context.textBaseline = 'bottom';
    context.fillText(`envelope ${compact(this.envelope)}`, this.width - RIGHT, y(this.envelope) - 4);
  }

  private drawScale(context: CanvasRenderingContext2D, y: (load: number) => number): void {
    const ink = colours();
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    context.lineWidth = 1;
    for (const tick of niceTicks(this.top, TICKS)) {
      context.strokeStyle = ink.grid;
      context.beginPath();
      context.moveTo(LEFT, Math.round(y(tick)) + 0.5);
      context.lineTo(this.width - RIGHT, Math.round(y(tick)) + 0.5);
      context.stroke();
      context.fillStyle = ink.muted;
      context.fillText(compact(tick), LEFT - 8, y(tick));
    }
    context.save();
    context.translate(12, (this.height - BOTTOM + TOP) / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = 'center';
    context.fillText('tokens read a step', 0, 0);
    context.restore();
  }

  private drawNames(context: CanvasRenderingContext2D, room: number, bottom: number): void {
    const ink = colours();
    context.fillStyle = ink.muted;
    context.textAlign = 'center';
    context.textBaseline = 'top';
    const every = Math.max(1, Math.ceil(30 / room));
    this.bars.forEach((bar, i) => {
      if (i % every === 0) context.fillText(bar.label, LEFT + (i + 0.5) * room, bottom + 5);
    });
    context.fillText('worker', LEFT + (this.width - LEFT - RIGHT) / 2, bottom + 21);
  }
}
