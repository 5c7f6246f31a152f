// workers.ts - every worker of the fleet: state, health, load, slots, KV; and taking one out of the traffic.
import { el, setAttribute, setText } from '../dom.ts';
import { ask } from '../feed.ts';
import { compact, percent, whole } from '../format.ts';
import { workerName, type Fleet, type Store, type Worker } from '../model.ts';
import type { Scope, View } from '../view.ts';

const EVERY_MS = 400; // a table is read, not watched
const TROUBLE = new Set(['dead', 'absent', 'draining']);

interface Figures {
  load: number;
  margin: number;
  sequences: number;
  queued: number;
  kv: number | null; // share that is used
  running: number | null;
  waiting: number | null;
}

// One line of the table; its cells are made once and change alone.
class Row {
  readonly root: HTMLElement;
  private readonly state = el('span', { class: 'pill' });
  private readonly health = el('span', { class: 'pill' });
  private readonly cells = {
    load: el('td', { class: 'number', 'data-label': 'Load, tokens' }),
    margin: el('td', { class: 'number', 'data-label': 'Margin, tokens' }),
    kv: el('td', { class: 'number', 'data-label': 'KV used' }),
    queued: el('td', { class: 'number', 'data-label': 'Queued' }),
    engine: el('td', { class: 'number', 'data-label': 'Engine says' }),
    fault: el('td', { class: 'fault wide', 'data-label': 'Last fault' }),
  };
  private readonly slots = el('span');
  private readonly meter = el('meter', { min: '0', class: 'slots' });
  readonly action = el('button', { type: 'button', class: 'small' });
  inSight = true;

  constructor(id: number, fleet: Fleet, groupName: string) {
    this.root = el(
      'tr',
      {},
      el('th', { scope: 'row' }, workerName(fleet, id), el('small', {}, ` #${id} · ${groupName}`)),
      el('td', { 'data-label': 'State' }, this.state),
      el('td', { 'data-label': 'Health' }, this.health),
      this.cells.load,
      this.cells.margin,
      el('td', { class: 'number', 'data-label': 'In flight' }, this.slots, this.meter),
      this.cells.kv,
      this.cells.queued,
      this.cells.engine,
      this.cells.fault,
      el('td', {}, this.action),
    );
    this.root.dataset['worker'] = String(id);
  }

  show(worker: Worker, figures: Figures): void {
    setText(this.state, worker.removing ? 'leaving' : worker.state);
    setAttribute(this.state, 'class', `pill state-${worker.state}`);
    setText(this.health, worker.on_trial ? `${worker.health}, on trial` : worker.health);
    setAttribute(this.health, 'class', `pill health-${worker.health}`);
    setText(this.cells.load, whole(figures.load));
    setText(this.cells.margin, whole(figures.margin));
    setText(this.slots, `${figures.sequences} / ${worker.slots}`);
    setAttribute(this.meter, 'max', String(worker.slots));
    setAttribute(this.meter, 'value', String(Math.min(figures.sequences, worker.slots)));
    setText(this.cells.kv, figures.kv === null ? '–' : `${percent(figures.kv)}\u202f%`);
    setText(this.cells.queued, whole(figures.queued));
    setText(this.cells.engine, figures.running === null ? '–' : `${figures.running} + ${figures.waiting ?? 0}`);
    setText(this.cells.fault, worker.last_fault);
    setText(this.action, worker.drain_asked ? 'Take back' : 'Drain');
    setAttribute(this.action, 'aria-label', `${this.action.textContent} ${worker.url} rank ${worker.rank}`);
  }
}

export class WorkersView implements View {
  readonly root = el('div', { class: 'workers' });
  private readonly filter = el('input', { type: 'search', placeholder: 'Filter by address, group or state', 'aria-label': 'Filter workers' });
  private readonly count = el('p', { class: 'lead', role: 'status' });
  private readonly body = el('tbody');
  private readonly rows = new Map<string, Row>();
  private readonly prefill = el('section', { class: 'card', hidden: true });
  private readonly dialog = el('dialog', { 'aria-labelledby': 'drain-title' });
  // Rows that nobody sees need no change, which is most of them in a large fleet.
  private readonly sight = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const row = this.rows.get((target as HTMLElement).dataset['worker'] ?? '');
      if (row) row.inSight = isIntersecting;
    }
  }, { rootMargin: '200px' });
  private readonly said = el('p', { class: 'said', role: 'status' });
  private drawnAt = 0;
  private fleetName = '';

  constructor() {
    const heads: [string, string][] = [
      ['Worker', 'address'],
      ['State', ''],
      ['Health', 'breaker'],
      ['Load', 'tokens a step'],
      ['Margin', 'tokens'],
      ['In flight', 'of slots'],
      ['KV used', ''],
      ['Queued', 'requests'],
      ['Engine says', 'running + waiting'],
      ['Last fault', ''],
      ['', ''],
    ];
    const head = el('tr', {}, ...heads.map(([name, unit]) => el('th', { scope: 'col' }, name, el('small', {}, unit))));
    this.filter.addEventListener('input', () => (this.drawnAt = 0));
    this.root.append(
      el('div', { class: 'card-head' }, el('h2', {}, 'Workers'), this.filter),
      this.count,
      this.said,
      el(
        'div',
        { class: 'card table stack', tabindex: '0', role: 'region', 'aria-label': 'Workers' },
        el('table', {}, el('thead', {}, head), this.body),
      ),
      this.prefill,
      this.dialog,
    );
  }

  update(_store: Store, { fleetName, fleet }: Scope): void {
    const now = performance.now();
    if (now - this.drawnAt < EVERY_MS && fleetName === this.fleetName) return;
    this.drawnAt = now;
    if (fleetName !== this.fleetName) {
      this.fleetName = fleetName;
      this.rows.clear();
      this.body.replaceChildren();
    }
    const wanted = this.filter.value.trim().toLowerCase();
    const here = new Set<string>();
    let shown = 0;
    for (const group of Object.values(fleet.groups)) {
      group.workers.forEach((number, i) => {
        const id = String(number);
        const worker = fleet.workers[id];
        if (!worker) return;
        here.add(id);
        const row = this.rowOf(id, worker, fleet);
        const text = `${worker.url} ${worker.rank} ${group.name} ${worker.state} ${worker.health}`.toLowerCase();
        row.root.hidden = wanted !== '' && !text.includes(wanted);
        if (row.root.hidden) return;
        ++shown;
        if (!row.inSight) return;
        const capacity = group.kv_capacity_tokens;
        const free = group.kv_free_tokens[i] ?? null;
        row.show(worker, {
          load: group.load_tokens[i] ?? 0,
          margin: group.envelope_tokens - (group.load_tokens[i] ?? 0),
          sequences: group.sequences[i] ?? 0,
          queued: group.queued_requests[i] ?? 0,
          kv: capacity !== undefined && free !== null ? 1 - Math.max(free, 0) / capacity : (group.engine_kv_usage[i] ?? null),
          running: group.engine_running[i] ?? null,
          waiting: group.engine_waiting[i] ?? null,
        });
      });
    }
    for (const [id, row] of this.rows) {
      if (here.has(id)) continue;
      row.root.remove();
      this.rows.delete(id);
    }
    const all = Object.values(fleet.workers);
    const ready = all.filter((worker) => worker.takes_requests).length;
    const trouble = all.filter((worker) => TROUBLE.has(worker.state) || worker.health === 'held').length;
    setText(
      this.count,
      `${ready} of ${all.length} workers take requests` +
        (trouble > 0 ? `; ${trouble} to look at` : '') +
        (wanted !== '' ? `; ${shown} shown` : '') +
        '.',
    );
    this.showPrefill(fleet);
  }

  private rowOf(id: string, worker: Worker, fleet: Fleet): Row {
    let row = this.rows.get(id);
    if (!row) {
      row = new Row(Number(id), fleet, fleet.groups[worker.group]?.name ?? '');
      row.action.addEventListener('click', () => this.confirm(id, fleet));
      this.rows.set(id, row);
      this.body.append(row.root);
      this.sight.observe(row.root);
    }
    return row;
  }

  private confirm(id: string, fleet: Fleet): void {
    const worker = fleet.workers[id];
    if (!worker) return;
    const name = workerName(fleet, Number(id));
    const back = worker.drain_asked;
    const group = fleet.groups[worker.group];
    const running = group?.sequences[group.workers.indexOf(Number(id))] ?? 0;
    const others = Object.values(fleet.workers).filter((other) => other !== worker && other.takes_requests).length;
    const yes = el('button', { type: 'button', class: back ? 'primary' : 'danger' }, back ? 'Take back' : 'Drain');
    const no = el('button', { type: 'button', autofocus: true }, 'Cancel');
    no.addEventListener('click', () => this.dialog.close());
    yes.addEventListener('click', () => {
      this.dialog.close();
      void this.command(back ? '/workers/ready' : '/workers/drain', id, name);
    });
    this.dialog.replaceChildren(
      el('h3', { id: 'drain-title' }, back ? `Take ${name} back?` : `Drain ${name}?`),
      el(
        'p',
        {},
        back
          ? 'It takes new requests again.'
          : `It takes no new requests; the ${running} that it runs end as they would. It stays at the barrier until then.`,
      ),
      el('div', { class: 'buttons' }, no, yes),
    );
    if (!back && others === 0) {
      const warning = el('p', { class: 'warning' }, 'No other worker takes requests: all new ones will wait.');
      this.dialog.lastElementChild?.before(warning);
    }
    this.dialog.showModal();
  }

  private async command(path: string, id: string, name: string): Promise<void> {
    try {
      await ask(path, { method: 'POST', body: JSON.stringify({ fleet: this.fleetName, id: Number(id) }) });
      setText(this.said, path.endsWith('drain') ? `${name} is being drained.` : `${name} takes requests again.`);
    } catch (fault) {
      setText(this.said, `Not done: ${fault instanceof Error ? fault.message : String(fault)}`);
    }
  }

  private showPrefill(fleet: Fleet): void {
    const prefill = fleet.prefill;
    this.prefill.hidden = !prefill;
    if (!prefill) return;
    const heads = ['Prefill instance', 'State', 'Computing', 'KV held', 'KV stranded', 'Requests'];
    const rows = Object.values(prefill.instances).map((one) =>
      el(
        'tr',
        {},
        el('th', { scope: 'row' }, one.url.replace(/^https?:\/\//, ''), one.rank > 0 ? ` · rank ${one.rank}` : ''),
        el('td', {}, el('span', { class: `pill state-${one.ready ? 'ready' : 'dead'}` }, one.ready ? 'ready' : 'left alone')),
        el('td', { class: 'number' }, `${compact(one.computing_tokens)} tokens`),
        el('td', { class: 'number' }, `${compact(one.held_tokens)} tokens`),
        el('td', { class: 'number' }, `${compact(one.stranded_tokens)} tokens`),
        el('td', { class: 'number' }, String(one.requests)),
      ),
    );
    this.prefill.replaceChildren(
      el('h2', {}, 'Prefill'),
      el(
        'p',
        { class: 'lead' },
        `${prefill.waiting_requests} requests wait for an instance, ${prefill.in_flight_requests} are computed; ` +
          `the pool has use for ${prefill.pool_target_requests}. A prompt takes ${prefill.prefill_ms} ms.`,
      ),
      el(
        'div',
        { class: 'table', tabindex: '0', role: 'region', 'aria-label': 'Prefill instances' },
        el(
          'table',
          {},
          el('thead', {}, el('tr', {}, ...heads.map((name) => el('th', { scope: 'col' }, name)))),
          el('tbody', {}, ...rows),
        ),
      ),
    );
  }
}
