/**
 * A pod with a network of its own, and a neighbour that it has a link to: what a redirection is tried in. Who listens in
 * there says to each client which port it came to, and which one the client had meant. Needs root.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { execa } from 'execa';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { endWithRunner } from './runner-watch.ts';

export const addresses = {
  pod: { v4: '10.77.0.2', v6: 'fd77::2' },
  neighbour: { v4: '10.77.0.1', v6: 'fd77::1' },
} as const;

const script = join(packageRoot(), 'test/harness/original-destination.py');

export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Listening {
  /** `tcp 8080`, `udp 53 127.0.0.1 ::1` (at these addresses), `tproxy 15006` (takes connections to any address). */
  readonly ports: readonly string[];
  /** As whom; default root. */
  readonly uid?: number;
}

/** Where to connect to: `tcp 10.0.0.1 80`, `udp 10.0.0.1 53`, and from which port: `udp 10.0.0.1 53 5555`. */
export type Destination = `${'tcp' | 'udp'} ${string}`;

/** One of the two sides. */
export class NetworkSide {
  readonly #pid: number;
  readonly #children: ChildProcess[];

  constructor(pid: number, children: ChildProcess[]) {
    this.#pid = pid;
    this.#children = children;
  }

  /** As a file, for nsenter and the like. */
  get namespaceFile(): string {
    return `/proc/${this.#pid}/ns/net`;
  }

  /** Runs a program in there, and waits for its end. */
  async run(
    args: readonly string[],
    { uid, env = {} }: { uid?: number; env?: NodeJS.ProcessEnv } = {},
  ): Promise<CommandResult> {
    const user = uid === undefined ? [] : ['setpriv', '--reuid', `${uid}`, '--regid', `${uid}`, '--clear-groups'];
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const [program = '', ...rest] = this.#within([...user, 'env', ...variables, ...args]);
    const { exitCode = -1, stdout, stderr } = await execa(program, rest, { reject: false, timeout: 60_000 });
    return { exitCode, stdout, stderr };
  }

  /** Listens until the pod ends. */
  async listen({ ports, uid = 0 }: Listening): Promise<void> {
    const [program = '', ...args] = this.#within(['python3', script, `${uid}`, 'listen', ...ports]);
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
    endWithRunner(child);
    this.#children.push(child);
    for await (const line of createInterface({ input: child.stdout })) if (line === 'listening') return;
    throw new Error(`nobody listens at ${ports.join(', ')}`);
  }

  /** Who answers at each: `15006 for 10.77.0.2:8080`, `refused`, `silent`. */
  async ask(destinations: readonly Destination[], uid = 0): Promise<string[]> {
    const { stdout, stderr, exitCode } = await this.run(['python3', script, `${uid}`, 'ask', ...destinations]);
    if (exitCode !== 0) throw new Error(stderr);
    return stdout.split('\n');
  }

  #within(args: readonly string[]): string[] {
    return ['nsenter', `--net=${this.namespaceFile}`, ...args];
  }
}

export class PodNetwork {
  readonly pod: NetworkSide;
  readonly neighbour: NetworkSide;
  readonly #children: ChildProcess[];

  private constructor(pod: NetworkSide, neighbour: NetworkSide, children: ChildProcess[]) {
    this.pod = pod;
    this.neighbour = neighbour;
    this.#children = children;
  }

  static async start(): Promise<PodNetwork> {
    const children: ChildProcess[] = [];
    const pids = await Promise.all([namespace(children), namespace(children)]);
    const [pod, neighbour] = pids.map((pid) => new NetworkSide(pid, children)) as [NetworkSide, NetworkSide];
    await run(
      'ip',
      'link',
      'add',
      'eth0',
      'netns',
      `${pids[0]}`,
      'type',
      'veth',
      'peer',
      'name',
      'eth0',
      'netns',
      `${pids[1]}`,
    );
    for (const [side, { v4, v6 }] of [
      [pod, addresses.pod],
      [neighbour, addresses.neighbour],
    ] as const) {
      for (const command of [
        ['link', 'set', 'lo', 'up'],
        ['link', 'set', 'eth0', 'up'],
        ['addr', 'add', `${v4}/24`, 'dev', 'eth0'],
        ['-6', 'addr', 'add', `${v6}/64`, 'dev', 'eth0', 'nodad'],
      ]) {
        const { exitCode, stderr } = await side.run(['ip', ...command]);
        if (exitCode !== 0) throw new Error(`ip ${command.join(' ')}: ${stderr}`);
      }
    }
    for (const command of [
      ['route', 'add', 'default', 'via', addresses.neighbour.v4],
      ['-6', 'route', 'add', 'default', 'via', addresses.neighbour.v6],
    ]) {
      await pod.run(['ip', ...command]);
    }
    return new PodNetwork(pod, neighbour, children);
  }

  /** With the last process in them both namespaces are gone. */
  async end(): Promise<void> {
    await Promise.all(
      this.#children.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        child.kill('SIGKILL');
        await once(child, 'exit');
      }),
    );
  }
}

async function run(program: string, ...args: string[]): Promise<void> {
  await execa(program, args);
}

/** @returns the process that keeps a new namespace */
async function namespace(children: ChildProcess[]): Promise<number> {
  const child = spawn('unshare', ['--net', 'sh', '-c', 'echo here; exec sleep infinity'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  endWithRunner(child);
  children.push(child);
  for await (const _ of createInterface({ input: child.stdout })) return child.pid!;
  throw new Error('no network namespace can be made');
}
