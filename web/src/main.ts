// main.ts - the page: header, views by address (#/now), the stream of the router's state.
import 'uplot/dist/uPlot.min.css';
import './style.css';
import { byId, el, setAttribute, setText } from './dom.ts';
import { Feed, setToken, type Connection } from './feed.ts';
import { ago } from './format.ts';
import { Store } from './model.ts';
import { startTheme } from './theme.ts';
import type { Scope, View } from './view.ts';
import { CompareView } from './views/compare.ts';
import { ConfigView } from './views/config.ts';
import { DecisionsView } from './views/decisions.ts';
import { NowView } from './views/now.ts';
import { WorkersView } from './views/workers.ts';

const VIEWS: [string, string, () => View][] = [
  ['now', 'Now', () => new NowView()],
  ['decisions', 'Decisions', () => new DecisionsView()],
  ['workers', 'Workers', () => new WorkersView()],
  ['compare', 'Compare', () => new CompareView()],
  ['config', 'Config', () => new ConfigView()],
];

const store = new Store();
const made = new Map<string, View>();
let scopeKey = '';
let connection: Connection = { kind: 'connecting' };
let heardAt = 0;
let scriptingMs = 0; // in all updates; what one costs is measured by tests/browser/cost.ts

function currentView(): string {
  const name = location.hash.replace(/^#\//, '');
  return VIEWS.some(([known]) => known === name) ? name : 'now';
}

function viewOf(name: string): View {
  let view = made.get(name);
  if (!view) {
    const found = VIEWS.find(([known]) => known === name) ?? VIEWS[0];
    view = (found as (typeof VIEWS)[number])[2]();
    made.set(name, view);
  }
  return view;
}

// The fleet and group that are looked at: the chosen ones while they exist, else the first.
function scope(): Scope | null {
  if (!store.state) return null;
  const keys: [string, Scope][] = Object.entries(store.state.fleets).flatMap(([fleetName, fleet]) =>
    Object.entries(fleet.groups).map(([groupId, group]): [string, Scope] => [
      `${fleetName}/${groupId}`,
      { fleetName, fleet, groupId, group },
    ]),
  );
  const found = keys.find(([key]) => key === scopeKey) ?? keys[0];
  if (!found) return null;
  scopeKey = found[0];
  showScopes(keys);
  return found[1];
}

let scopesShown = '';
function showScopes(keys: [string, Scope][]): void {
  const causesOf = ({ fleet }: Scope): string => (fleet.fallback_causes ?? []).map((cause) => cause.replace('_', ' ')).join(', ');
  const text = keys.map(([key, one]) => `${key} ${one.group.name} ${one.fleet.policy} ${one.fleet.chosen_policy} ${causesOf(one)}`).join('|') + scopeKey;
  if (text === scopesShown) return;
  scopesShown = text;
  const chosen = keys.find(([key]) => key === scopeKey)?.[1];
  const policy = el('span', { class: 'pill policy', title: 'Policy that decides' }, chosen?.fleet.policy ?? '');
  const causes = chosen ? causesOf(chosen) : '';
  if (causes !== '') {
    const given = chosen?.fleet.chosen_policy;
    const whose = given === undefined || given === chosen?.fleet.policy ? 'fallback' : `in place of ${given}`;
    policy.append(el('b', { class: 'fallback' }, ` ▲ ${whose}: ${causes}`));
  }
  if (keys.length === 1) {
    byId('scope').replaceChildren(el('span', { class: 'where' }, `${chosen?.fleetName} · ${chosen?.group.name}`), policy);
    return;
  }
  const select = el('select', { 'aria-label': 'Fleet and group' });
  for (const [key, { fleetName, group }] of keys) {
    const option = el('option', { value: key }, `${fleetName} · ${group.name}`);
    option.selected = key === scopeKey;
    select.append(option);
  }
  select.addEventListener('change', () => {
    scopeKey = select.value;
    draw();
  });
  byId('scope').replaceChildren(select, policy);
}

function draw(): void {
  const name = currentView();
  const view = viewOf(name);
  const main = byId('view');
  if (main.firstElementChild !== view.root) main.replaceChildren(view.root);
  for (const link of byId('tabs').querySelectorAll('a')) {
    setAttribute(link, 'aria-current', link.dataset['view'] === name ? 'page' : 'false');
  }
  const where = scope();
  if (store.state && where) view.update(store, where);
  setAttribute(document.documentElement, 'data-ready', String(where !== null));
  if (store.state) {
    const up = ago(store.nowS);
    setText(byId('foot'), `BalanceRoute ${store.state.version} · up ${up}${store.state.draining ? ' · stopping' : ''}`);
    setAttribute(byId('foot'), 'data-updates', String(store.updates));
  }
}

function showConnection(): void {
  const status = byId('status');
  const words = { connecting: 'connecting', live: 'live', waiting: 'reconnecting', unauthorized: 'token needed' };
  setText(status, words[connection.kind]);
  setAttribute(status, 'class', `status ${connection.kind}`);
  const banner = byId('banner');
  const stale = connection.kind === 'waiting' && heardAt > 0;
  banner.hidden = connection.kind !== 'waiting';
  if (connection.kind === 'waiting') {
    const since = stale ? ` The figures are ${ago((performance.now() - heardAt) / 1000)} old.` : '';
    setText(banner, `No connection to the router (${connection.why}); trying again.${since}`);
  }
  document.body.classList.toggle('stale', stale);
  if (connection.kind === 'unauthorized') askToken(connection.wrong);
}

function askToken(wrong: boolean): void {
  if (document.querySelector('dialog.token')) return;
  const input = el('input', { type: 'password', autocomplete: 'off', required: true, id: 'token' });
  const dialog = el('dialog', { class: 'token', 'aria-labelledby': 'token-title' });
  const form = el(
    'form',
    { method: 'dialog' },
    el('h3', { id: 'token-title' }, 'Admin token'),
    el('p', {}, 'This router wants the token that is set as ', el('code', {}, 'admin.token'), '. It is kept for this tab only.'),
    wrong ? el('p', { class: 'warning' }, 'The token that was given is not the right one.') : null,
    el('label', { for: 'token' }, 'Token'),
    input,
    el('div', { class: 'buttons' }, el('button', { type: 'submit', class: 'primary' }, 'Open the dashboard')),
  );
  form.addEventListener('submit', () => setToken(input.value));
  dialog.addEventListener('close', () => {
    dialog.remove();
    feed.retry();
  });
  dialog.append(form);
  document.body.append(dialog);
  dialog.showModal();
}

const feed = new Feed({
  event(name, data) {
    heardAt = performance.now();
    if (name === 'state') store.takeWhole(data as Parameters<Store['takeWhole']>[0]);
    if (name === 'delta') store.takeDelta(data as Parameters<Store['takeDelta']>[0]);
    if (document.visibilityState === 'visible') draw();
  },
  connection(state) {
    connection = state;
    showConnection();
  },
  took(ms) {
    scriptingMs += ms;
    setAttribute(byId('foot'), 'data-scripting-ms', scriptingMs.toFixed(2));
  },
});

function start(): void {
  startTheme(byId('theme'));
  VIEWS.forEach(([name, title], i) => {
    const link = el('a', { href: `#/${name}`, title: `Key ${i + 1}` }, title);
    link.dataset['view'] = name;
    byId('tabs').append(link);
  });
  addEventListener('hashchange', () => {
    draw();
    document.title = `${VIEWS.find(([name]) => name === currentView())?.[1]} · BalanceRoute`;
  });
  addEventListener('keydown', (event) => {
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    const view = VIEWS[Number(event.key) - 1];
    if (view) location.hash = `#/${view[0]}`;
    if (event.key === '/') {
      const search = document.querySelector<HTMLInputElement>('main input[type=search]');
      if (search) event.preventDefault();
      search?.focus();
    }
  });
  draw();
  void feed.run();
}

start();
