// feed.ts - the stream of the router's state, kept open: asks for the token where there is one, and comes back.
import { EventParser } from './sse.ts';

const TOKEN = 'balanceroute.token';
const SILENCE_MS = 5000; // the router says something ten times a second
const WAITS_MS = [300, 600, 1200, 2500, 5000] as const;

export type Connection =
  | { kind: 'connecting' | 'live' }
  | { kind: 'waiting'; why: string; tries: number }
  | { kind: 'unauthorized'; wrong: boolean };

export interface FeedListener {
  event(name: string, data: unknown): void;
  connection(state: Connection): void;
  // What came was read and shown in so much time.
  took(ms: number): void;
}

// The token is kept for this tab and this session only.
export function token(): string | null {
  return sessionStorage.getItem(TOKEN);
}
export function setToken(value: string): void {
  sessionStorage.setItem(TOKEN, value);
}

// A request to the admin listener, with the token. Throws what the router says is wrong.
export async function ask(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  const known = token();
  if (known !== null) headers.set('Authorization', `Bearer ${known}`);
  const response = await fetch(path, { ...options, headers, cache: 'no-store' });
  if (!response.ok && response.status !== 401) throw new Error(await faultOf(response));
  return response;
}

async function faultOf(response: Response): Promise<string> {
  const text = await response.text();
  try {
    return (JSON.parse(text) as { error: { message: string } }).error.message;
  } catch {
    return `status ${response.status}`;
  }
}

export class Feed {
  private readonly listener: FeedListener;
  private tries = 0;
  private wake: (() => void) | null = null;

  constructor(listener: FeedListener) {
    this.listener = listener;
  }

  // Never ends.
  async run(): Promise<void> {
    for (;;) {
      let why = 'the router closed the stream';
      try {
        if (await this.follow()) continue;
      } catch (fault) {
        why = fault instanceof Error ? fault.message : String(fault);
      }
      this.listener.connection({ kind: 'waiting', why, tries: this.tries });
      await this.pause(WAITS_MS[Math.min(this.tries, WAITS_MS.length - 1)] ?? 5000);
      ++this.tries;
    }
  }

  // Tries at once, for example with a token that has just been entered.
  retry(): void {
    this.tries = 0;
    this.wake?.();
  }

  // One connection to its end; true if it is to be tried again without a pause.
  private async follow(): Promise<boolean> {
    this.listener.connection({ kind: 'connecting' });
    const abort = new AbortController();
    let watchdog = setTimeout(() => abort.abort(), SILENCE_MS);
    try {
      const response = await ask('/live', { signal: abort.signal });
      if (response.status === 401 || !response.body) {
        clearTimeout(watchdog);
        this.listener.connection({ kind: 'unauthorized', wrong: token() !== null });
        await this.pause(Number.POSITIVE_INFINITY);
        return true;
      }
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new EventParser();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return false;
        clearTimeout(watchdog);
        watchdog = setTimeout(() => abort.abort(), SILENCE_MS);
        const began = performance.now();
        const events = parser.push(value);
        for (const { event, data } of events) this.listener.event(event, JSON.parse(data));
        if (events.length === 0) continue;
        this.tries = 0;
        this.listener.connection({ kind: 'live' });
        this.listener.took(performance.now() - began);
      }
    } catch (fault) {
      if (abort.signal.aborted) throw new Error('nothing came from the router for 5 s');
      throw fault;
    } finally {
      clearTimeout(watchdog);
    }
  }

  private async pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      this.wake = resolve;
      if (Number.isFinite(ms)) setTimeout(resolve, ms);
    });
    this.wake = null;
  }
}
