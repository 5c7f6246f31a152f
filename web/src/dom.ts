// dom.ts - elements in one expression, and changes of text only where it has changed.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | boolean | ((event: never) => void)>;

// el('td', {class: 'number'}, '12'); a function is a listener, a truth an attribute without a value.
export function el<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') {
      element.addEventListener(key, value as EventListener);
    } else if (value === true) {
      element.setAttribute(key, '');
    } else if (value !== false) {
      element.setAttribute(key, value);
    }
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

export function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element;
}
