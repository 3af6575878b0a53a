/** Untrusted clients in a separate process, so that they load the server and not the test. They exit with the test. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { AttackName } from './attacks.ts';

export type HostileOrder =
  | { readonly type: 'begin'; readonly attack: AttackName; readonly port: number }
  | { readonly type: 'end' };

export type HostileReport =
  | { readonly type: 'ready' }
  | { readonly type: 'begun' }
  | { readonly type: 'ended'; readonly done: number };

export class HostileProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(): Promise<HostileProcess> {
    const child = fork(join(import.meta.dirname, 'hostile-child.ts'), { execArgv: [] });
    await once(child, 'message');
    return new HostileProcess(child);
  }

  /** Resolves when the attack is under way. */
  async begin(attack: AttackName, port: number): Promise<void> {
    await this.#send({ type: 'begin', attack, port });
  }

  /** @returns number of requests or streams of the attack */
  async end(): Promise<number> {
    const report = await this.#send({ type: 'end' });
    return report.type === 'ended' ? report.done : 0;
  }

  stop(): void {
    this.#child.kill('SIGKILL');
  }

  async #send(order: HostileOrder): Promise<HostileReport> {
    const report = once(this.#child, 'message') as Promise<[HostileReport]>;
    this.#child.send(order);
    return (await report)[0];
  }
}
