import assert from 'node:assert/strict';
import test from 'node:test';
import { Store, sampleOf, workerName, type Decision, type Fleet, type State, type Worker } from '../../src/model.ts';

function state(): State {
  const none = { count: 0 };
  return {
    version: '1', draining: false, output_tokens: 100, requests: { ok: 1 },
    recent: { span_s: 60, arrival_wait_ms: none, pool_wait_ms: none, ttft_ms: none, tpot_ms: none, e2e_ms: none },
    fleets: {
      main: {
        policy: 'br_fit', score_meaning: '', dialect: 'aggregated', barrier: true, waiting_requests: 3, rounds: 0, admissions: 0,
        forced_holds: 0, holds_expired: 0, workers: {},
        groups: {
          '0': {
            name: 'g', steps: 1, step_ms: 20, envelope_tokens: 10, spread_tokens: 5, imbalance_tokens: 12,
            load_idle_fraction: 0.3, barrier_idle_fraction: 0.2, token_price: 'measured', step_fixed_ms: 10,
            step_per_token_ms: 1e-4, workers: [0, 2], load_tokens: [10, 5], sequences: [2, 1], queued_requests: [0, 0],
            kv_free_tokens: [null, null], engine_running: [], engine_waiting: [], engine_kv_usage: [],
          },
        },
      },
    },
  };
}

const decision = (serial: number): Decision => ({
  fleet: 'main', serial, at_s: 0, waited_s: 0, request: serial, worker: 0, group: '0', prompt_tokens: 1, sequences: 1,
  stage: 'subset', set_size: 1, score: 0, margin_tokens: 0, envelope_tokens: 0,
});

test('a change before any state is no state', () => {
  const store = new Store();
  store.takeDelta({ now_s: 1, patch: { output_tokens: 7 } });
  assert.equal(store.state, null);
});

test('changes are applied, and what charts show is remembered twice a second', () => {
  const store = new Store();
  store.takeWhole({ now_s: 10, boot: 'b', state: state(), history: { at_s: [9.5], columns: { output_tokens: [90] } }, decisions: [] });
  store.takeDelta({ now_s: 10.1, patch: { output_tokens: 110 } });
  assert.equal(store.history.times.length, 1);
  store.takeDelta({ now_s: 10.6, patch: { fleets: { main: { groups: { '0': { load_tokens: [12, 6], envelope_tokens: 12 } } } } } });
  assert.equal(store.state?.output_tokens, 110);
  assert.deepEqual(store.history.times, [9.5, 10.6]);
  assert.deepEqual(store.history.column('output_tokens'), [90, 110]);
  assert.deepEqual(store.history.column('main/0/load/2'), [null, 6]);
  assert.deepEqual(store.history.column('main/0/envelope'), [null, 12]);
});

test('decisions are added at the end, and the oldest go', () => {
  const store = new Store();
  const first = Array.from({ length: 150 }, (_, i) => decision(i + 1));
  store.takeWhole({ now_s: 1, boot: 'b', state: state(), history: { at_s: [], columns: {} }, decisions: first });
  store.takeDelta({ now_s: 1.1, patch: {}, decisions: Array.from({ length: 100 }, (_, i) => decision(151 + i)) });
  assert.equal(store.decisions.length, 200);
  assert.equal(store.decisions[0]?.serial, 51);
  assert.equal(store.decisions.at(-1)?.serial, 250);
});

test('a sample has the names that the history of the router has', () => {
  assert.deepEqual(new Map(sampleOf(state())).get('main/0/mean'), 8);
  assert.deepEqual(sampleOf(state()).map(([name]) => name), [
    'output_tokens', 'main/waiting', 'main/0/envelope', 'main/0/mean', 'main/0/least', 'main/0/sequences', 'main/0/step_ms',
    'main/0/load_idle', 'main/0/barrier_idle', 'main/0/load/0', 'main/0/load/2',
  ]);
});

test('a worker is named by its address, and its rank where there are several', () => {
  const at = (port: number, rank: number): Worker => ({ url: `http://10.0.0.1:${port}`, rank }) as Worker;
  const fleet = { workers: { 0: at(8000, 0), 1: at(8000, 1), 2: at(9000, 0) } } as unknown as Fleet;
  assert.deepEqual([0, 1, 2, 3].map((id) => workerName(fleet, id)), [
    '10.0.0.1:8000 · rank 0', '10.0.0.1:8000 · rank 1', '10.0.0.1:9000', '#3',
  ]);
});
