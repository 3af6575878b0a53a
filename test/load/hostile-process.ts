/** Untrusted clients in a separate process, so that they load the server and not the test. They end with the test. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { AttackName } from './attacks.ts';

export type HostileOrder =
  | { readonly type: 'begin'; readonly attack: AttackName; readonly port: number }
  | { readonly type: 'end' };

export type HostileAnswer =
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
    await this.#ask({ type: 'begin', attack, port });
  }

  /** @returns number of requests or streams of the attack */
  async end(): Promise<number> {
    const answer = await this.#ask({ type: 'end' });
    return answer.type === 'ended' ? answer.done : 0;
  }

  stop(): void {
    this.#child.kill('SIGKILL');
  }

  async #ask(order: HostileOrder): Promise<HostileAnswer> {
    const answer = once(this.#child, 'message') as Promise<[HostileAnswer]>;
    this.#child.send(order);
    return (await answer)[0];
  }
}
