// compare.ts - the policy that decides beside another one that only looks on, on the same traffic.
import { LineChart } from '../charts/lines.ts';
import { el, setText } from '../dom.ts';
import { compact, percent, whole } from '../format.ts';
import type { Fleet, Shadow, Store } from '../model.ts';
import { Tile } from '../tile.ts';
import type { Scope, View } from '../view.ts';

const SETTINGS = `fleets:
  - name: main
    shadow: {policy: least_tokens, mode: world}   # or mode: step`;

export class CompareView implements View {
  readonly root = el('div', { class: 'compare' });
  private readonly none = el(
    'section',
    { class: 'card' },
    el('h3', {}, 'No shadow is configured'),
    el(
      'p',
      {},
      'A shadow is a second policy that decides on the live traffic without carrying any: its choices are compared and ' +
        'thrown away. In the configuration of the router:',
    ),
    el('pre', {}, el('code', {}, SETTINGS)),
    el(
      'p',
      { class: 'lead' },
      'world: it keeps books of its own, fed by the real arrivals and lengths, and shows what the fleet would look like. ' +
        'step: it decides each round from the live state, and shows what one step of its would have been worth. To ' +
        'compare policies on a trace instead, without a router: balanceroute simulate.',
    ),
  );
  private readonly words = el('p', { class: 'verdict', role: 'status' });
  private readonly world = new WorldPanel();
  private readonly step = new StepPanel();

  constructor() {
    this.root.append(el('h2', {}, 'Compare'), this.none, this.words, this.world.root, this.step.root);
  }

  update(store: Store, scope: Scope): void {
    const shadow = scope.fleet.shadow;
    this.none.hidden = shadow !== undefined;
    this.words.hidden = shadow === undefined;
    this.world.root.hidden = shadow?.mode !== 'world';
    this.step.root.hidden = shadow?.mode !== 'step';
    if (!shadow) return;
    setText(this.words, verdict(scope.fleet, shadow, scope.groupId));
    if (shadow.mode === 'world') this.world.update(store, scope, shadow);
    if (shadow.mode === 'step') this.step.update(store, scope, shadow);
  }
}

// What the figures say, in a sentence.
function verdict(fleet: Fleet, shadow: Shadow, groupId: string): string {
  const stopped = shadow.stopped === undefined ? '' : ` It is asked no more: ${shadow.stopped}.`;
  return standing(fleet, shadow, groupId) + stopped;
}

function standing(fleet: Fleet, shadow: Shadow, groupId: string): string {
  if (shadow.mode === 'world') {
    const group = shadow.groups?.[groupId];
    if (!group) return `Shadow ${shadow.policy}: no step of this group has been seen yet.`;
    return (
      `Since the router started, ${percent(group.live_load_idle_fraction)} % of reading capacity was unused under ` +
      `${fleet.policy}; under ${shadow.policy} it would have been ${percent(group.load_idle_fraction)} %.`
    );
  }
  const rounds = shadow.rounds ?? 0;
  if (rounds === 0) return `Shadow ${shadow.policy}: no round has been compared yet.`;
  const each = (shadow.regret_tokens ?? 0) / rounds;
  return (
    `In ${percent((shadow.worse_rounds ?? 0) / rounds)} % of ${whole(rounds)} rounds ${shadow.policy} would have left the group ` +
    `more even after the step. On the mean ${fleet.policy} left ${compact(Math.abs(Math.round(each)))} tokens of imbalance ` +
    `${each > 0 ? 'more' : 'less'} than ${shadow.policy} would have. One step only: a policy that looks ahead may lose it on purpose.`
  );
}

class WorldPanel {
  readonly root = el('div', { hidden: true });
  private readonly live = new Tile('Load idle, live', 'compare-live', '', 'headline');
  private readonly other = new Tile('Load idle, shadow', 'compare-shadow', '');
  private readonly waiting = new Tile('Waiting there', 'compare-waiting', '');
  private readonly idle = new LineChart({ title: 'Load idle since the start', unit: '%', height: 220, value: (v) => v.toFixed(1) });
  private readonly imbalance = new LineChart({ title: 'Imbalance', unit: 'tokens', height: 220 });
  private drawnAt = -1;

  constructor() {
    this.root.append(
      el('section', { class: 'tiles' }, this.live.root, this.other.root, this.waiting.root),
      el('section', { class: 'card' }, this.idle.root),
      el('section', { class: 'card' }, this.imbalance.root),
    );
  }

  update(store: Store, scope: Scope, shadow: Shadow): void {
    const group = shadow.groups?.[scope.groupId];
    this.live.show(group ? percent(group.live_load_idle_fraction) : '–', '%', scope.fleet.policy);
    this.other.show(group ? percent(group.load_idle_fraction) : '–', '%', shadow.policy);
    const left = shadow.left_out ?? 0;
    this.waiting.show(
      whole(shadow.waiting_requests ?? 0),
      '',
      `requests in the shadow's world; ${scope.fleet.waiting_requests} here${left > 0 ? `; ${left} left out` : ''}`,
    );
    const table = store.history;
    const end = table.times.at(-1) ?? 0;
    if (end === this.drawnAt) return;
    this.drawnAt = end;
    const times = table.times.map((time) => Math.round(10 * (time - end)) / 10);
    const column = (name: string): (number | null)[] => table.column(`${scope.fleetName}/${scope.groupId}/${name}`);
    const percents = (name: string): (number | null)[] => column(name).map((v) => (v === null ? null : 100 * v));
    const lines = [
      { label: scope.fleet.policy, colour: (ink: { load: string }) => ink.load, width: 2 },
      { label: `${shadow.policy} (shadow)`, colour: (ink: { peak: string }) => ink.peak, dash: [6, 4] },
    ];
    this.idle.show(times, lines, [percents('live_load_idle'), percents('shadow_load_idle')]);
    this.imbalance.show(times, lines, [column('imbalance'), column('shadow_imbalance')]);
  }
}

class StepPanel {
  readonly root = el('div', { hidden: true });
  private readonly rounds = new Tile('Rounds compared', 'compare-rounds', '');
  private readonly worse = new Tile('Shadow more even', 'compare-worse', 'of rounds, after the step');
  private readonly regret = new Tile('Regret a round', 'compare-regret', 'tokens of imbalance more than the shadow; below 0: less');
  private readonly line = new LineChart({ title: 'Regret since the start', unit: 'tokens', height: 220 });
  private drawnAt = -1;

  constructor() {
    this.root.append(
      el('section', { class: 'tiles' }, this.rounds.root, this.worse.root, this.regret.root),
      el('section', { class: 'card' }, this.line.root),
    );
  }

  update(store: Store, scope: Scope, shadow: Shadow): void {
    const rounds = shadow.rounds ?? 0;
    this.rounds.show(whole(rounds), '', `${scope.fleet.policy} against ${shadow.policy}`);
    this.worse.show(rounds > 0 ? percent((shadow.worse_rounds ?? 0) / rounds) : '–', '%');
    this.regret.show(rounds > 0 ? compact(Math.round((shadow.regret_tokens ?? 0) / rounds)) : '–', 'tokens');
    const table = store.history;
    const end = table.times.at(-1) ?? 0;
    if (end === this.drawnAt) return;
    this.drawnAt = end;
    const times = table.times.map((time) => Math.round(10 * (time - end)) / 10);
    this.line.show(
      times,
      [{ label: 'sum of regret', colour: (ink) => ink.load, width: 2 }],
      [table.column(`${scope.fleetName}/regret_tokens`)],
    );
  }
}
