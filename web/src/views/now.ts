// now.ts - what the fleet does at this moment and did in the last minutes: does the barrier waste time?
import { LoadBars, type Bar } from '../charts/bars.ts';
import { LineChart, type Line } from '../charts/lines.ts';
import { el, setAttribute, setText } from '../dom.ts';
import { compact, milliseconds, percent, whole } from '../format.ts';
import { LINES, sum, workerName, type Fleet, type Group, type Store, type Summary } from '../model.ts';
import { rates } from '../series.ts';
import { Tile } from '../tile.ts';
import type { Scope, View } from '../view.ts';

const RATE_SPAN_S = 3;
const SPANS_S = [60, 120, 300] as const;

export class NowView implements View {
  readonly root = el('div', { class: 'now' });
  private readonly tiles = {
    barrier: new Tile('Barrier idle', 'tile-barrier', '', 'headline'),
    load: new Tile('Load idle', 'tile-load-idle', 'of reading capacity unused', 'headline'),
    step: new Tile('Step time', 'tile-step', ''),
    spread: new Tile('Spread', 'tile-spread', ''),
    tokens: new Tile('Throughput', 'tile-tokens', 'output tokens, all fleets'),
    running: new Tile('Running', 'tile-running', ''),
    waiting: new Tile('Waiting', 'tile-waiting', ''),
    wait: new Tile('Wait for a worker', 'tile-wait', ''),
    ttft: new Tile('Time to first token', 'tile-ttft', ''),
    tpot: new Tile('Time per token', 'tile-tpot', ''),
  };
  private readonly bars = new LoadBars();
  private readonly loads = new LineChart({ title: 'Loads', unit: 'tokens read a step', height: 230 });
  private readonly idle = new LineChart({ title: 'Idle share', unit: '%', height: 150, value: (v) => v.toFixed(1) });
  private readonly step = new LineChart({ title: 'Step time', unit: 'ms', height: 150, value: (v) => v.toFixed(1) });
  private readonly queue = new LineChart({ title: 'Running and waiting', unit: 'requests', height: 150 });
  private readonly tokens = new LineChart({ title: 'Throughput', unit: 'output tokens/s', height: 150 });
  private readonly spans = el('div', { class: 'spans', role: 'group', 'aria-label': 'Time shown' });
  private readonly announce = el('p', { class: 'visually-hidden', id: 'now-words' });
  private spanS: number = SPANS_S[1];
  private names: string[] = []; // of the workers that are shown, kept while they are the same
  private namesOf = '';
  private drawnRows = -1;
  private drawnScope = '';

  constructor() {
    const t = this.tiles;
    this.root.append(
      this.announce,
      el('section', { class: 'tiles', 'aria-label': 'Figures' }, ...Object.values(t).map((tile) => tile.root)),
      el('section', { class: 'card' }, el('h2', {}, 'Load by worker'), this.bars.root),
      el(
        'section',
        { class: 'card' },
        el('div', { class: 'card-head' }, el('h2', {}, 'The last minutes'), this.spans),
        this.loads.root,
        el('div', { class: 'grid' }, this.idle.root, this.step.root, this.queue.root, this.tokens.root),
      ),
    );
    for (const span of SPANS_S) {
      const button = el('button', { type: 'button', click: () => this.choose(span) }, `${span / 60}\u202fmin`);
      button.dataset['span'] = String(span);
      this.spans.append(button);
    }
    this.choose(this.spanS);
  }

  update(store: Store, scope: Scope): void {
    this.showTiles(store, scope);
    this.showBars(scope);
    const where = `${scope.fleetName}/${scope.groupId}`;
    const last = store.history.times.at(-1) ?? 0;
    if (last === this.drawnRows && where === this.drawnScope) return;
    this.drawnRows = last;
    this.drawnScope = where;
    this.showLines(store, scope, `${where}/`);
  }

  private choose(span: number): void {
    this.spanS = span;
    this.drawnRows = -1;
    for (const button of this.spans.querySelectorAll('button')) {
      setAttribute(button, 'aria-pressed', String(button.dataset['span'] === String(span)));
    }
  }

  private showTiles(store: Store, { fleet, group }: Scope): void {
    const state = store.state;
    if (!state) return;
    const t = this.tiles;
    const measured = group.token_price === 'measured';
    t.barrier.show(
      percent(group.barrier_idle_fraction),
      '%',
      measured ? 'of worker time lost at the barrier' : 'at most: the price of a token is not known yet',
    );
    t.load.show(percent(group.load_idle_fraction), '%');
    t.step.show(
      group.step_ms > 0 ? group.step_ms.toFixed(1) : '–',
      'ms',
      measured && group.step_per_token_ms > 0
        ? `${group.step_fixed_ms.toFixed(1)} ms + ${(group.step_per_token_ms * 1000).toPrecision(3)} ms per 1000 tokens`
        : `step ${whole(group.steps)}`,
    );
    t.spread.show(compact(group.spread_tokens), 'tokens', `imbalance ${compact(group.imbalance_tokens)} tokens`);
    t.tokens.show(compact(Math.round(rateNow(store))), 'tokens/s');
    const slots = slotsOf(fleet, group);
    t.running.show(whole(sum(group.sequences)), '', `of ${whole(slots)} slots${kvWords(group)}`);
    const queued = sum(group.queued_requests);
    t.waiting.show(
      whole(fleet.waiting_requests + (fleet.prefill?.waiting_requests ?? 0)),
      '',
      fleet.prefill
        ? `${fleet.prefill.waiting_requests} for prefill, ${fleet.waiting_requests} for a worker`
        : queued > 0
          ? `${queued} of them bound to a worker`
          : 'requests for a worker',
    );
    showTimes(t.wait, state.recent.pool_wait_ms);
    showTimes(t.ttft, state.recent.ttft_ms);
    showTimes(t.tpot, state.recent.tpot_ms);
    setText(
      this.announce,
      `Barrier idle ${percent(group.barrier_idle_fraction)} percent, load idle ${percent(group.load_idle_fraction)} percent.`,
    );
  }

  private showBars({ fleet, fleetName, group }: Scope): void {
    const key = `${fleetName}/${group.workers.join()}`;
    if (key !== this.namesOf) {
      this.namesOf = key;
      this.names = group.workers.map((id) => workerName(fleet, id));
    }
    const bars: Bar[] = group.workers.map((id, i) => {
      const worker = fleet.workers[id];
      return {
        name: this.names[i] ?? '',
        label: String(id),
        load: group.load_tokens[i] ?? 0,
        running: group.sequences[i] ?? 0,
        slots: worker?.slots ?? 0,
        takesRequests: worker?.takes_requests ?? false,
      };
    });
    this.bars.show(bars, group.envelope_tokens);
  }

  private showLines(store: Store, { fleet, fleetName, group }: Scope, prefix: string): void {
    const table = store.history;
    const end = table.times.at(-1) ?? 0;
    const first = Math.max(table.times.findIndex((time) => time >= end - this.spanS), 0);
    const times = table.times.slice(first).map((time) => Math.round(10 * (time - end)) / 10);
    const column = (name: string): (number | null)[] => table.column(prefix + name).slice(first);
    const percents = (name: string): (number | null)[] => column(name).map((v) => (v === null ? null : 100 * v));

    const each = group.workers.length <= LINES ? group.workers : [];
    const lines: Line[] = each.map((id, i) => ({
      label: workerName(fleet, id),
      colour: (ink) => ink.lines[i % ink.lines.length] ?? ink.load,
      width: 1,
      legend: group.workers.length <= 8,
    }));
    const columns = each.map((id) => column(`load/${id}`));
    if (each.length === 0) {
      lines.push({ label: 'least loaded', colour: (ink) => ink.load, width: 1 });
      columns.push(column('least'));
    }
    lines.push({ label: 'mean', colour: (ink) => ink.text, dash: [2, 3] });
    lines.push({ label: 'envelope', colour: (ink) => ink.envelope, width: 2, dash: [6, 4] });
    this.loads.show(times, lines, [...columns, column('mean'), column('envelope')]);

    this.idle.show(
      times,
      [
        { label: 'barrier', colour: (ink) => ink.peak, width: 2 },
        { label: 'load', colour: (ink) => ink.idle },
      ],
      [percents('barrier_idle'), percents('load_idle')],
    );
    this.step.show(times, [{ label: 'one step', colour: (ink) => ink.load, width: 2 }], [column('step_ms')]);
    const waiting = table.column(`${fleetName}/waiting`).slice(first);
    const queues: Line[] = [
      { label: 'running', colour: (ink) => ink.load, width: 2 },
      { label: 'wait for a worker', colour: (ink) => ink.peak },
    ];
    const queueColumns = [column('sequences'), waiting];
    if (fleet.prefill) {
      queues.push({ label: 'wait for prefill', colour: (ink) => ink.idle });
      queueColumns.push(table.column(`${fleetName}/arrival_waiting`).slice(first));
    }
    this.queue.show(times, queues, queueColumns);
    const counts = table.column('output_tokens');
    this.tokens.show(
      times,
      [{ label: 'all fleets', colour: (ink) => ink.load, width: 2 }],
      [rates(table.times, counts).slice(first)],
    );
  }
}

function showTimes(tile: Tile, times: Summary): void {
  if (times.count === 0) return tile.show('–', '', 'no request ended in the last minute');
  const [p50, unit] = milliseconds(times.p50 ?? 0);
  tile.show(p50, unit, `median; P95 ${milliseconds(times.p95 ?? 0).join('\u202f')}, P99 ${milliseconds(times.p99 ?? 0).join('\u202f')}`);
}

// Output tokens a second over the last seconds.
function rateNow(store: Store): number {
  const table = store.history;
  const counts = table.column('output_tokens');
  const now = store.state?.output_tokens ?? 0;
  let at = table.times.length - 1;
  while (at > 0 && store.nowS - (table.times[at] ?? 0) < RATE_SPAN_S) --at;
  const passed = store.nowS - (table.times[at] ?? store.nowS);
  const before = counts[at];
  return passed > 0 && before !== null && before !== undefined ? Math.max(0, (now - before) / passed) : 0;
}

function slotsOf(fleet: Fleet, group: Group): number {
  return sum(group.workers.map((id) => fleet.workers[id]?.slots ?? 0));
}

function kvWords(group: Group): string {
  const capacity = group.kv_capacity_tokens;
  if (capacity !== undefined) {
    const free = sum(group.kv_free_tokens);
    return `; KV ${percent(1 - Math.max(free, 0) / (capacity * group.workers.length))}\u202f% used`;
  }
  const told = group.engine_kv_usage.filter((usage) => usage !== null);
  return told.length > 0 ? `; KV ${percent(sum(told) / told.length)}\u202f% used` : '';
}
