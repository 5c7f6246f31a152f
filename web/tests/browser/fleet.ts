// fleet.ts - emulated engines, the router in front of them, traffic, and a browser that looks.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { Process, root } from './process.ts';

const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
// A folder with the page's files in place of those in the program, for work on the page.
const FILES = process.env['DASHBOARD_FILES'];
const TRACE = `${root}examples/traces/azure2023_conv_segment.csv`;
const SOON_MS = 15_000;

export interface FleetOptions {
  ranks: number;
  slots: number;
  perTokenMs?: number;
  token?: string;
  dialect?: string;
  more?: Record<string, unknown>; // members of the fleet in the router's settings
}

export class TestFleet {
  readonly folder = mkdtempSync(join(tmpdir(), 'balanceroute-web-'));
  private options!: FleetOptions;
  private engines!: Process;
  private router!: Process;
  private traffic: Process | null = null;
  private ports: [number, number] = [0, 0];

  static async start(options: FleetOptions): Promise<TestFleet> {
    const fleet = new TestFleet();
    fleet.options = options;
    const prefill = options.dialect === undefined ? [] : ['--dialect', options.dialect, '--prefill-instances', 2];
    fleet.engines = await Process.start(
      'emulate', '--base-port', 0, '--ranks', options.ranks, '--ranks-per-port', options.ranks, '--slots', options.slots,
      '--fixed-ms', 10, '--per-token-ms', options.perTokenMs ?? 4e-4, '--step-log', 64, ...prefill,
    );
    // The router comes back at the same address, so its ports are known before.
    fleet.ports = [await freePort(), await freePort()];
    await fleet.startRouter();
    return fleet;
  }

  get admin(): string {
    return `http://127.0.0.1:${this.ports[1]}`;
  }

  async startRouter(): Promise<void> {
    const { options } = this;
    const url = (this.engines.ready['groups'] as string[][])[0]?.[0];
    const prefill = this.engines.ready['prefill'] as string[];
    const config = {
      listen: `127.0.0.1:${this.ports[0]}`,
      admin: { listen: `127.0.0.1:${this.ports[1]}`, ...(options.token ? { token: options.token } : {}) },
      fleets: [
        {
          name: 'main',
          ...(options.dialect ? { dialect: options.dialect } : {}),
          groups: [{ name: 'decode', slots: options.slots, workers: [{ url, ranks: options.ranks, addressing: 'header' }] }],
          ...(prefill.length > 0 ? { prefill: { instances: prefill.map((instance) => ({ url: instance })) } } : {}),
          ...options.more,
        },
      ],
    };
    const path = join(this.folder, 'router.yaml');
    writeFileSync(path, JSON.stringify(config));
    this.router = await Process.start('serve', '--config', path);
  }

  async stopRouter(): Promise<void> {
    await this.router.end();
  }

  // A real trace with as many requests as keep the fleet busy, until the end.
  send(ratePerS: number, warm: number): void {
    this.traffic = Process.background(
      'replay', '--url', `http://127.0.0.1:${this.ports[0]}`, '--trace', TRACE, '--rate-per-s', ratePerS,
      '--length-member', 'emulator', '--warm-requests', warm, '--retries', 5,
    );
  }

  async stopTraffic(): Promise<void> {
    await this.traffic?.end();
    this.traffic = null;
  }

  async fromEngines<Answer>(path: string): Promise<Answer> {
    const url = (this.engines.ready['groups'] as string[][])[0]?.[0];
    return (await (await fetch(`${url}${path}`)).json()) as Answer;
  }

  async fromRouter<Answer>(path: string, options: RequestInit = {}): Promise<Answer> {
    return (await (await fetch(this.admin + path, options)).json()) as Answer;
  }

  async end(): Promise<void> {
    await this.stopTraffic();
    await this.router.end();
    await this.engines.end();
    rmSync(this.folder, { recursive: true });
  }
}

async function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

export async function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync',
    ],
  });
}

// A page that has a state to show. What the page's scripts complain of is in `faults`.
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<{ page: Page; faults: string[] }> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  if (FILES) await context.route(/\/dashboard\.(js|css)$/, (route) => route.fulfill({ path: FILES + new URL(route.request().url()).pathname }));
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('pageerror', (fault) => faults.push(String(fault)));
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text());
  });
  await page.goto(url);
  return { page, faults };
}

export async function isReady(page: Page): Promise<void> {
  await page.waitForFunction(() => document.documentElement.dataset['ready'] === 'true');
}

// Until the condition holds; fails if it does not soon.
export async function soon(what: string, condition: () => Promise<boolean>): Promise<void> {
  const began = performance.now();
  while (!(await condition())) {
    if (performance.now() - began > SOON_MS) throw new Error(`within ${SOON_MS / 1000} s: expected that ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
