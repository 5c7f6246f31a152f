// process.ts - commands of the program that run beside a test, from their ready line to their end.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const READY_MS = 15_000;
const END_MS = 15_000;

export const root = fileURLToPath(new URL('../../..', import.meta.url));
export const binary = process.env['BALANCEROUTE_BIN'] ?? `${root}build/release/bin/balanceroute`;

export class Process {
  readonly ready: Record<string, unknown>;
  private readonly child: ChildProcess;

  private constructor(child: ChildProcess, ready: Record<string, unknown>) {
    this.child = child;
    this.ready = ready;
  }

  // Returned when it has printed its ready line.
  static async start(...words: (string | number)[]): Promise<Process> {
    const { BALANCEROUTE_BIN: _, ...environment } = process.env;
    const child = spawn(binary, words.map(String), { stdio: ['ignore', 'pipe', 'pipe'], env: environment });
    let said = '';
    let faults = '';
    child.stderr.on('data', (piece: Buffer) => (faults = (faults + piece.toString()).slice(-4000)));
    const line = await new Promise<string>((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${words[0]}: no ready line\n${faults}`)), READY_MS);
      child.on('error', reject);
      child.on('exit', (code) => reject(new Error(`${words[0]}: exit code ${code}\n${faults}`)));
      child.stdout.on('data', (piece: Buffer) => {
        said += piece.toString();
        const end = said.indexOf('\n');
        if (end < 0) return;
        clearTimeout(late);
        resolve(said.slice(0, end));
      });
    });
    return new Process(child, JSON.parse(line) as Record<string, unknown>);
  }

  // Without a ready line: what it does is seen elsewhere.
  static background(...words: (string | number)[]): Process {
    const { BALANCEROUTE_BIN: _, ...environment } = process.env;
    return new Process(spawn(binary, words.map(String), { stdio: 'ignore', env: environment }), {});
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.kill('SIGTERM');
    const late = setTimeout(() => this.child.kill('SIGKILL'), END_MS);
    await ended;
    clearTimeout(late);
  }
}
