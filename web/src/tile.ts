// tile.ts - one figure, large.
import { el, setText } from './dom.ts';

// One figure: name, value with unit, and what it says.
export class Tile {
  readonly root: HTMLElement;
  private readonly value = el('span', { class: 'value' });
  private readonly unit = el('span', { class: 'unit' });
  private readonly hint: HTMLElement;

  constructor(name: string, id: string, hint: string, classes = '') {
    this.hint = el('dd', { class: 'hint' }, hint);
    this.root = el(
      'dl',
      { class: `tile ${classes}`, id },
      el('dt', {}, name),
      el('dd', { class: 'figure' }, this.value, this.unit),
      this.hint,
    );
  }

  show(value: string, unit: string, hint?: string): void {
    setText(this.value, value);
    setText(this.unit, unit === '' ? '' : `\u202f${unit}`);
    if (hint !== undefined) setText(this.hint, hint);
  }
}
