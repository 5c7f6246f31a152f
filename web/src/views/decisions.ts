// decisions.ts - the last admissions and why each request is where it is.
import { el, setText } from '../dom.ts';
import { ago, compact, percent, score, whole } from '../format.ts';
import { workerName, type Decision, type Fleet, type Store } from '../model.ts';
import type { Scope, View } from '../view.ts';

const SHOWN = 60;
const EVERY_MS = 400;
const STAGES: Record<string, string> = {
  bound: 'bound on arrival; its turn came in the queue of its worker',
  single: 'stage 1: best single candidate while many slots are free',
  subset: 'stage 2: part of the best set of requests for this worker',
  work_conserving: 'stage 2: no set helped, so the least harmful request fills the slot',
  overdue: 'passed over too often: it went first',
  late: 'waited too long: placed in its turn, before the policy chooses',
};

// Where the shadow would have put it, below the worker that it went to; the rank alone where the address is the same.
function shadowChoice(one: Decision, fleet: Fleet): HTMLElement | null {
  if (one.shadow_worker === undefined) return null;
  const there = fleet.workers[one.shadow_worker];
  const beside = there !== undefined && there.url === fleet.workers[one.worker]?.url;
  const name = beside ? `rank ${there.rank}` : workerName(fleet, one.shadow_worker);
  return el('small', { class: 'shadow-choice' }, `shadow: ${one.shadow_worker === one.worker ? 'the same' : name}`);
}

// The same in a sentence.
function shadowWords(one: Decision, fleet: Fleet): string {
  const policy = fleet.shadow?.policy ?? '';
  if (one.shadow_worker === undefined) return `Shadow ${policy} had not placed it then, or nobody was looking.`;
  if (one.shadow_worker === one.worker) return `Shadow ${policy} would have it on the same worker.`;
  return `Shadow ${policy} would have it on ${workerName(fleet, one.shadow_worker)}.`;
}

export class DecisionsView implements View {
  readonly root = el('div', { class: 'decisions' });
  private readonly meaning = el('p', { class: 'lead' });
  private readonly predictor = el('p', { class: 'lead' });
  private readonly pause = el('button', { type: 'button', 'aria-pressed': 'false' }, 'Pause');
  private readonly rows = el('tbody');
  private readonly detail = el('section', { class: 'card detail', 'aria-live': 'polite', hidden: true });
  private readonly empty = el('p', { class: 'empty' }, 'No request has been placed yet.');
  private paused = false;
  private boot = '';
  private fleetName = '';
  private last = 0; // serial of the newest row
  private drawnAt = 0;
  private ages: [HTMLElement, number][] = [];

  constructor() {
    this.pause.addEventListener('click', () => {
      this.paused = !this.paused;
      this.pause.setAttribute('aria-pressed', String(this.paused));
      setText(this.pause, this.paused ? 'Go on' : 'Pause');
    });
    const heads: [string, string][] = [
      ['When', 'seconds ago'],
      ['Request', 'prompt tokens × sequences'],
      ['Worker', 'that it went to'],
      ['Rule', ''],
      ['Score', 'higher is better'],
      ['Margin', 'tokens'],
      ['Effect', 'on the envelope'],
      ['Runner-up', 'worker and score'],
      ['Waited', ''],
    ];
    const head = el('tr', {}, ...heads.map(([name, unit]) => el('th', { scope: 'col' }, name, el('small', {}, unit))));
    this.root.append(
      el('div', { class: 'card-head' }, el('h2', {}, 'Decisions'), this.pause),
      this.meaning,
      this.predictor,
      this.detail,
      this.empty,
      el(
        'div',
        { class: 'card table stack', tabindex: '0', role: 'region', 'aria-label': 'Decisions, newest first' },
        el('table', {}, el('thead', {}, head), this.rows),
      ),
    );
  }

  update(store: Store, { fleetName, fleet }: Scope): void {
    if (store.boot !== this.boot) {
      this.boot = store.boot;
      this.begin(fleetName);
    }
    setText(this.meaning, `Policy ${fleet.policy}. Score: ${fleet.score_meaning}.`);
    this.showPredictor(fleet);
    const now = performance.now();
    if (fleetName !== this.fleetName) this.begin(fleetName);
    if (this.paused || now - this.drawnAt < EVERY_MS) return;
    this.drawnAt = now;
    const fresh = store.decisions.filter((one) => one.fleet === fleetName && one.serial > this.last).slice(-SHOWN);
    this.last = fresh.at(-1)?.serial ?? this.last;
    this.rows.prepend(...fresh.map((one) => this.row(one, fleet)).reverse());
    this.ages = this.ages.slice(-SHOWN);
    while (this.rows.childElementCount > SHOWN) this.rows.lastElementChild?.remove();
    this.empty.hidden = this.rows.childElementCount > 0;
    for (const [cell, atS] of this.ages) setText(cell, ago(store.nowS - atS));
  }

  // Of a fleet nothing is shown yet; also after a restart of the router, whose decisions begin anew.
  private begin(fleetName: string): void {
    this.fleetName = fleetName;
    this.last = 0;
    this.ages = [];
    this.rows.replaceChildren();
  }

  private row(one: Decision, fleet: Fleet): HTMLElement {
    const age = el('td', { class: 'number', 'data-label': 'When' });
    this.ages.push([age, one.at_s]);
    const size = one.prompt_tokens * one.sequences;
    const over = Math.max(0, size - one.margin_tokens);
    const open = el(
      'button',
      { type: 'button', class: 'link', click: () => this.explain(one, fleet) },
      `${whole(one.prompt_tokens)}${one.sequences > 1 ? ` × ${one.sequences}` : ''}`,
    );
    open.setAttribute('aria-label', `Explain request ${one.request}`);
    const second = one.runner_up;
    const row = el(
      'tr',
      {},
      age,
      el('td', { class: 'number', 'data-label': 'Prompt tokens' }, open),
      el('td', { class: 'wide', 'data-label': 'Worker' }, workerName(fleet, one.worker), shadowChoice(one, fleet)),
      el('td', { 'data-label': 'Rule' }, el('span', { class: `pill stage-${one.stage}`, title: STAGES[one.stage] ?? '' }, one.stage.replace('_', ' '))),
      el('td', { class: 'number', 'data-label': 'Score' }, score(one.score)),
      el('td', { class: 'number', 'data-label': 'Margin, tokens' }, compact(one.margin_tokens)),
      el('td', { class: over > 0 ? 'over' : 'fits', 'data-label': 'Effect' }, over > 0 ? `▲ up to +${compact(over)}` : '✓ fits'),
      el('td', { class: 'wide', 'data-label': 'Runner-up' }, second ? `${workerName(fleet, second.worker)}: ${score(second.score)}` : '–'),
      el('td', { class: 'number', 'data-label': 'Waited' }, ago(one.waited_s)),
    );
    row.dataset['serial'] = String(one.serial);
    return row;
  }

  private explain(one: Decision, fleet: Fleet): void {
    const name = workerName(fleet, one.worker);
    const size = one.prompt_tokens * one.sequences;
    const over = Math.max(0, size - one.margin_tokens);
    const second = one.runner_up;
    this.detail.replaceChildren(
      el('h3', {}, `Request ${one.request} → ${name}`),
      el(
        'p',
        {},
        `It brought ${whole(size)} tokens to read a step. ${name} had room for ${whole(one.margin_tokens)} below the envelope, `,
        over > 0
          ? `so the longest step may read up to ${whole(over)} tokens more.`
          : 'so no step became longer because of it.',
      ),
      el(
        'p',
        {},
        `Rule: ${STAGES[one.stage] ?? one.stage}${one.set_size > 1 ? ` (${one.set_size} requests chosen together)` : ''}. `,
        `Score ${score(one.score)}: ${fleet.score_meaning}. `,
        second
          ? `The next best worker was ${workerName(fleet, second.worker)} with ${score(second.score)}, ` +
              `${score(one.score - second.score)} less.`
          : 'No other worker could take it, or nobody was looking when it was decided.',
      ),
      el('p', { hidden: fleet.shadow === undefined }, shadowWords(one, fleet)),
    );
    this.detail.hidden = false;
    for (const row of this.rows.children) row.classList.toggle('chosen', (row as HTMLElement).dataset['serial'] === String(one.serial));
  }

  private showPredictor(fleet: Fleet): void {
    const known = fleet.predictor;
    this.predictor.hidden = !known;
    if (!known) return;
    if (known.predictions === 0) {
      setText(this.predictor, `Predictor ${known.name}: nothing to judge yet.`);
      return;
    }
    setText(
      this.predictor,
      `Predictor ${known.name}, ${known.horizon_steps} steps ahead: foretold an end in ${percent(known.mean_predicted)} % of ` +
        `${whole(known.predictions)} cases, ${percent(known.mean_happened)} % ended. Brier score ${known.brier_score.toFixed(4)} ` +
        `(${known.brier_reference.toFixed(4)} if it knew nothing but the rate; lower is better).`,
    );
  }
}
