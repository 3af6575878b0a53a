/**
 * Runs the applications in a separate process, so that the test's work (simulated proxies, delays, files) does not add to their response time. The
 * child ({@link file://./backends-child.ts}) exits with its parent.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { IssuedCertificate } from '../../certs/authority.ts';

export type BackendsOrder =
  | { readonly type: 'backends.start'; readonly names: readonly string[]; readonly certificate: IssuedCertificate }
  | { readonly type: 'backends.count'; readonly name: string; readonly host: string };

export type BackendsReport =
  | { readonly type: 'backends.ready' }
  | { readonly type: 'backends.started'; readonly ports: readonly number[] }
  | { readonly type: 'backends.counted'; readonly requests: number };

export class BackendsProcess {
  /** Ports by application name. */
  readonly ports: ReadonlyMap<string, number>;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, ports: ReadonlyMap<string, number>) {
    this.#child = child;
    this.ports = ports;
  }

  /** Resolves when the applications accept connections. */
  static async start(names: readonly string[], certificate: IssuedCertificate): Promise<BackendsProcess> {
    const child = fork(join(import.meta.dirname, 'backends-child.ts'), { execArgv: [] });
    await reportOf(child);
    const startResponse = await order(child, { type: 'backends.start', names, certificate });
    if (startResponse.type !== 'backends.started') throw new Error(`applications did not start: ${startResponse.type}`);
    return new BackendsProcess(child, new Map(names.map((name, index) => [name, startResponse.ports[index]!])));
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Number of requests that an application has received with this `host` header. */
  async requests(name: string, host: string): Promise<number> {
    const countResponse = await order(this.#child, { type: 'backends.count', name, host });
    return countResponse.type === 'backends.counted' ? countResponse.requests : 0;
  }

  close(): void {
    this.#child.kill('SIGKILL');
  }
}

async function order(child: ChildProcess, message: BackendsOrder): Promise<BackendsReport> {
  const report = reportOf(child);
  child.send(message);
  return report;
}

async function reportOf(child: ChildProcess): Promise<BackendsReport> {
  const endController = new AbortController();
  const { signal } = endController;
  try {
    const exit = once(child, 'exit', { signal }).then(([code]) => {
      throw new Error(`the process of the applications exited with ${code}`);
    });
    const [report] = (await Promise.race([once(child, 'message', { signal }), exit])) as [BackendsReport];
    return report;
  } finally {
    endController.abort();
  }
}
