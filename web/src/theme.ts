// theme.ts - light, dark or as the system has it; colours for canvases come from the style sheet.

const KEY = 'balanceroute.theme';
const CHOICES = ['system', 'light', 'dark'] as const;
type Choice = (typeof CHOICES)[number];

export interface Palette {
  text: string;
  muted: string;
  grid: string;
  surface: string;
  load: string;
  peak: string;
  margin: string;
  envelope: string;
  idle: string;
  drained: string;
  lines: string[];
}

const listeners: (() => void)[] = [];
let palette: Palette | null = null;

function chosen(): Choice {
  const stored = localStorage.getItem(KEY);
  return CHOICES.find((choice) => choice === stored) ?? 'system';
}

function apply(): void {
  const choice = chosen();
  if (choice === 'system') {
    delete document.documentElement.dataset['theme'];
  } else {
    document.documentElement.dataset['theme'] = choice;
  }
  palette = null;
  for (const listener of listeners) listener();
}

export function colours(): Palette {
  if (palette) return palette;
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(name).trim();
  palette = {
    text: of('--text'),
    muted: of('--muted'),
    grid: of('--grid'),
    surface: of('--surface'),
    load: of('--load'),
    peak: of('--peak'),
    margin: of('--margin'),
    envelope: of('--envelope'),
    idle: of('--idle'),
    drained: of('--drained'),
    lines: Array.from({ length: 8 }, (_, i) => of(`--line-${i}`)),
  };
  return palette;
}

export function onTheme(listener: () => void): void {
  listeners.push(listener);
}

const ICONS: Record<Choice, string> = { system: '◐', light: '☀', dark: '☾' };

export function startTheme(button: HTMLElement): void {
  const label = (): void => {
    const choice = chosen();
    button.textContent = ICONS[choice];
    const words = `Colours: ${choice === 'system' ? 'as the system' : choice}. Change`;
    button.setAttribute('aria-label', words);
    button.title = words;
  };
  button.addEventListener('click', () => {
    const next = CHOICES[(CHOICES.indexOf(chosen()) + 1) % CHOICES.length] ?? 'system';
    localStorage.setItem(KEY, next);
    apply();
    label();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', apply);
  apply();
  label();
}
