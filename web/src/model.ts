// model.ts - what the router tells (docs/live-feed.md), and the store of it that the views read.
import { mergePatch, type JsonObject } from './merge.ts';
import { SeriesTable, type HistoryJson } from './series.ts';

export interface Summary {
  count: number;
  mean?: number;
  p50?: number;
  p95?: number;
  p99?: number;
  max?: number;
}

export interface Group {
  name: string;
  steps: number;
  step_ms: number;
  envelope_tokens: number;
  spread_tokens: number;
  imbalance_tokens: number;
  load_idle_fraction: number;
  barrier_idle_fraction: number;
  token_price: 'measured' | 'modelled';
  step_fixed_ms: number;
  step_per_token_ms: number;
  kv_capacity_tokens?: number;
  // Columns, a number a worker, in the order of `workers`.
  workers: number[];
  load_tokens: number[];
  sequences: number[];
  queued_requests: number[];
  kv_free_tokens: (number | null)[];
  engine_running: (number | null)[];
  engine_waiting: (number | null)[];
  engine_kv_usage: (number | null)[];
}

export interface Worker {
  group: string;
  url: string;
  rank: number;
  state: 'absent' | 'ready' | 'draining' | 'dead' | 'removed';
  takes_requests: boolean;
  health: string;
  on_trial: boolean;
  drain_asked: boolean;
  removing: boolean;
  last_fault: string;
  incarnation: number;
  slots: number;
  slots_ahead: number;
  background_sequences: number;
  disagreements: number;
}

export interface PrefillInstance {
  url: string;
  rank: number;
  computing_tokens: number;
  held_tokens: number;
  stranded_tokens: number;
  requests: number;
  ready: boolean;
}

export interface Prefill {
  waiting_requests: number;
  in_flight_requests: number;
  pool_target_requests: number;
  prefill_ms: number;
  instances: Record<string, PrefillInstance>;
}

export interface Predictor {
  name: string;
  horizon_steps: number;
  predictions: number;
  mean_predicted: number;
  mean_happened: number;
  brier_score: number;
  brier_reference: number;
}

// Another policy that only looks on. With mode step: rounds and regret; with mode world: groups and what waits there.
export interface Shadow {
  policy: string;
  mode: 'step' | 'world';
  stopped?: string; // why it is asked no more
  rounds?: number;
  worse_rounds?: number;
  regret_tokens?: number;
  waiting_requests?: number;
  left_out?: number;
  groups?: Record<string, { load_idle_fraction: number; live_load_idle_fraction: number; imbalance_tokens: number }>;
}

export interface Fleet {
  policy: string; // that decides now
  chosen_policy?: string; // that is set
  score_meaning: string;
  dialect: string;
  barrier: boolean;
  waiting_requests: number;
  rounds: number;
  admissions: number;
  forced_holds: number;
  holds_expired: number;
  groups: Record<string, Group>;
  workers: Record<string, Worker>;
  prefill?: Prefill;
  predictor?: Predictor;
  shadow?: Shadow;
  fallback_causes?: string[]; // why another policy than the chosen one decides
}

export interface State {
  version: string;
  draining: boolean;
  output_tokens: number;
  requests: Record<string, number>;
  recent: {
    span_s: number;
    arrival_wait_ms: Summary;
    pool_wait_ms: Summary;
    ttft_ms: Summary;
    tpot_ms: Summary;
    e2e_ms: Summary;
  };
  fleets: Record<string, Fleet>;
}

export interface Decision {
  fleet: string;
  serial: number;
  at_s: number;
  waited_s: number;
  request: number;
  worker: number;
  group: string;
  prompt_tokens: number;
  sequences: number;
  stage: string;
  set_size: number;
  score: number;
  margin_tokens: number;
  envelope_tokens: number;
  runner_up?: { worker: number; score: number };
  shadow_worker?: number; // where the shadow would have put it
}

interface WholeMessage {
  now_s: number;
  boot: string;
  state: State;
  history: HistoryJson;
  decisions: Decision[];
}

interface DeltaMessage {
  now_s: number;
  patch: JsonObject;
  decisions?: Decision[];
}

const DECISIONS_KEPT = 200;
const SPAN_S = 300;
const SAMPLE_EVERY_S = 0.5;
// As the router: workers of a group whose loads get a line each.
export const LINES = 32;

export class Store {
  state: State | null = null;
  decisions: Decision[] = []; // oldest first
  history = new SeriesTable(SPAN_S);
  nowS = 0; // of the router's clock, which began with it
  updates = 0;
  boot = ''; // names the router's start
  private sampledS = -1;

  takeWhole(message: WholeMessage): void {
    this.state = message.state;
    this.boot = message.boot;
    this.decisions = message.decisions.slice(-DECISIONS_KEPT);
    this.history.load(message.history);
    this.nowS = message.now_s;
    this.sampledS = message.now_s;
    ++this.updates;
  }

  takeDelta(message: DeltaMessage): void {
    if (!this.state) return;
    mergePatch(this.state as unknown as JsonObject, message.patch);
    this.nowS = message.now_s;
    if (message.decisions) this.decisions = [...this.decisions, ...message.decisions].slice(-DECISIONS_KEPT);
    if (this.nowS - this.sampledS >= SAMPLE_EVERY_S) {
      this.sampledS = this.nowS;
      this.history.add(this.nowS, sampleOf(this.state));
    }
    ++this.updates;
  }
}

// The figures of a state that charts remember, by the names that the router's own history has.
export function sampleOf(state: State): [string, number][] {
  const row: [string, number][] = [['output_tokens', state.output_tokens]];
  for (const [fleetName, fleet] of Object.entries(state.fleets)) {
    row.push([`${fleetName}/waiting`, fleet.waiting_requests]);
    if (fleet.shadow?.regret_tokens !== undefined) row.push([`${fleetName}/regret_tokens`, fleet.shadow.regret_tokens]);
    if (fleet.prefill) row.push([`${fleetName}/arrival_waiting`, fleet.prefill.waiting_requests]);
    for (const [groupId, group] of Object.entries(fleet.groups)) {
      if (group.workers.length === 0) continue;
      const prefix = `${fleetName}/${groupId}/`;
      row.push([`${prefix}envelope`, group.envelope_tokens]);
      row.push([`${prefix}mean`, Math.round(sum(group.load_tokens) / group.workers.length)]);
      row.push([`${prefix}least`, group.envelope_tokens - group.spread_tokens]);
      row.push([`${prefix}sequences`, sum(group.sequences)]);
      row.push([`${prefix}step_ms`, group.step_ms]);
      row.push([`${prefix}load_idle`, group.load_idle_fraction]);
      row.push([`${prefix}barrier_idle`, group.barrier_idle_fraction]);
      const other = fleet.shadow?.groups?.[groupId];
      if (other) {
        row.push([`${prefix}live_load_idle`, other.live_load_idle_fraction]);
        row.push([`${prefix}shadow_load_idle`, other.load_idle_fraction]);
        row.push([`${prefix}imbalance`, group.imbalance_tokens]);
        row.push([`${prefix}shadow_imbalance`, other.imbalance_tokens]);
      }
      if (group.workers.length > LINES) continue;
      group.workers.forEach((id, i) => row.push([`${prefix}load/${id}`, group.load_tokens[i] ?? 0]));
    }
  }
  return row;
}

export function sum(values: readonly (number | null)[]): number {
  let total = 0;
  for (const value of values) total += value ?? 0;
  return total;
}

// "10.0.0.1:8000 · rank 2"; the rank only where the address has several.
export function workerName(fleet: Fleet, id: number): string {
  const worker = fleet.workers[id];
  if (!worker) return `#${id}`;
  const workers = Object.values(fleet.workers);
  const address = worker.url.replace(/^https?:\/\//, '');
  const hasOthers = workers.some((other) => other !== worker && other.url === worker.url);
  return hasOthers ? `${address} · rank ${worker.rank}` : address;
}
