// config.ts - the settings in effect and where each comes from.
import { el, setText } from '../dom.ts';
import { ask } from '../feed.ts';
import type { Store } from '../model.ts';
import type { Scope, View } from '../view.ts';

interface Setting {
  value: unknown;
  origin: string;
}

export class ConfigView implements View {
  readonly root = el('div', { class: 'config' });
  private readonly filter = el('input', { type: 'search', placeholder: 'Filter by name, value or origin', 'aria-label': 'Filter settings' });
  private readonly given = el('input', { type: 'checkbox', id: 'only-given' });
  private readonly count = el('p', { class: 'lead', role: 'status' });
  private readonly body = el('tbody');
  private settings: [string, Setting][] = [];
  private asked = false;

  constructor() {
    this.filter.addEventListener('input', () => this.draw());
    this.given.addEventListener('change', () => this.draw());
    const again = el('button', { type: 'button', click: () => void this.load() }, 'Read again');
    const heads = ['Setting', 'Value', 'Origin'];
    this.root.append(
      el('div', { class: 'card-head' }, el('h2', {}, 'Settings in effect'), this.filter),
      el('p', { class: 'lead' }, this.given, el('label', { for: 'only-given' }, ' only what was set; defaults left out '), again),
      this.count,
      el(
        'div',
        { class: 'card table', tabindex: '0', role: 'region', 'aria-label': 'Settings' },
        el(
          'table',
          {},
          el('thead', {}, el('tr', {}, ...heads.map((name) => el('th', { scope: 'col' }, name)))),
          this.body,
        ),
      ),
    );
  }

  update(_store: Store, _scope: Scope): void {
    if (this.asked) return;
    this.asked = true;
    void this.load();
  }

  private async load(): Promise<void> {
    try {
      const answer = (await (await ask('/config')).json()) as { settings: Record<string, Setting> };
      this.settings = Object.entries(answer.settings);
      this.draw();
    } catch (fault) {
      setText(this.count, `The settings could not be read: ${fault instanceof Error ? fault.message : String(fault)}`);
    }
  }

  private draw(): void {
    const wanted = this.filter.value.trim().toLowerCase();
    const shown = this.settings.filter(([path, { value, origin }]) => {
      if (this.given.checked && origin === 'default') return false;
      return wanted === '' || `${path} ${String(value)} ${origin}`.toLowerCase().includes(wanted);
    });
    setText(this.count, `${shown.length} of ${this.settings.length} settings`);
    this.body.replaceChildren(
      ...shown.map(([path, { value, origin }]) =>
        el(
          'tr',
          { class: origin === 'default' ? 'default' : '' },
          el('th', { scope: 'row' }, el('code', {}, path)),
          el('td', {}, el('code', {}, value === '' ? '""' : String(value))),
          el('td', { class: 'origin', title: origin }, origin.replace(/^\/.*\//, '')),
        ),
      ),
    );
  }
}
