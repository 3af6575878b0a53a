/**
 * A pod with its own network, and a neighbour connected to it, for tests of redirection. Listeners report to each client the port that it reached and
 * its original destination. Needs root.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Writable } from 'node:stream';
import { execa } from 'execa';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { eventually } from './eventually.ts';
import { endWithRunner } from './runner-watch.ts';

export const addresses = {
  pod: { v4: '10.77.0.2', v6: 'fd77::2' },
  neighbour: { v4: '10.77.0.1', v6: 'fd77::1' },
} as const;

/** Isolated and without site packages, which saves a fifth of the start time. */
const python = ['python3', '-IS', join(packageRoot(), 'test/harness/original-destination.py')];

export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Listening {
  /**
   * `tcp 8080` (sends first), `reply 8080` (waits for the client's bytes), `http 8080`, `udp 53 127.0.0.1 ::1` (at these addresses), `tproxy
   * 15006` (accepts connections to any address).
   */
  readonly ports: readonly string[];
  /** User ID (default: root). */
  readonly uid?: number;
}

/**
 * Target, and for UDP optionally the source port: `tcp 10.0.0.1 80`, `udp 10.0.0.1 53`, `udp 10.0.0.1 53 5555`, `reply 10.0.0.1 80` (sends
 * bytes that are not HTTP), `http 10.0.0.1 80 HOST` (a request for that host).
 */
export type Destination = `${'tcp' | 'udp' | 'reply' | 'http'} ${string}`;

interface QueryProcess {
  readonly input: Writable;
  readonly lines: AsyncIterator<string>;
}

export class NetworkSide {
  /** PID of the process that keeps its namespaces. */
  readonly pid: number;
  readonly #children: ChildProcess[];
  readonly #mounts: boolean;
  readonly #queryProcesses = new Map<number, QueryProcess>();

  /** @param mounts whether it also has its own mount namespace */
  constructor(pid: number, children: ChildProcess[], { mounts = false } = {}) {
    this.pid = pid;
    this.#children = children;
    this.#mounts = mounts;
  }

  /** Creates the namespaces, with loopback up. */
  static async make(children: ChildProcess[], options: { readonly mounts?: boolean } = {}): Promise<NetworkSide> {
    const side = new NetworkSide(await namespace(children, options), children, options);
    await side.mustRun('ip', 'link', 'set', 'lo', 'up');
    return side;
  }

  /** Path for nsenter and similar programs. */
  get namespaceFile(): string {
    return `/proc/${this.pid}/ns/net`;
  }

  /** Runs a program in the namespaces and waits for its exit. */
  async run(
    args: readonly string[],
    { uid, env = {}, input = '' }: { uid?: number; env?: NodeJS.ProcessEnv; input?: string } = {},
  ): Promise<CommandResult> {
    const user = uid === undefined ? [] : ['setpriv', '--reuid', `${uid}`, '--regid', `${uid}`, '--clear-groups'];
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const environment = variables.length === 0 ? [] : ['env', ...variables];
    const [program = '', ...programArgs] = this.within([...user, ...environment, ...args]);
    const {
      exitCode = -1,
      stdout,
      stderr,
    } = await execa(program, programArgs, { reject: false, timeout: 60_000, input });
    return { exitCode, stdout, stderr };
  }

  /**
   * Runs a command that must succeed.
   * @throws Error with the output of the program
   */
  async mustRun(...args: readonly string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await this.run(args);
    if (exitCode !== 0) throw new Error(`${args.join(' ')}: ${stderr}`);
    return stdout;
  }

  /** Runs all commands with one `ip` process. */
  async configure(commands: readonly string[]): Promise<void> {
    const { exitCode, stderr } = await this.run(['ip', '-batch', '-'], { input: `${commands.join('\n')}\n` });
    if (exitCode !== 0) throw new Error(`ip: ${stderr}`);
  }

  /** Listens until the pod ends. */
  async listen({ ports, uid = 0 }: Listening): Promise<void> {
    const [program = '', ...args] = this.within([...python, `${uid}`, 'listen', ...ports]);
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
    endWithRunner(child);
    this.#children.push(child);
    for await (const line of createInterface({ input: child.stdout })) if (line === 'listening') return;
    throw new Error(`nobody listens at ${ports.join(', ')}`);
  }

  /** The response of each destination: `15006 for 10.77.0.2:8080`, `refused`, `silent`, `closed`; for HTTP, a status other than 200. */
  async query(destinations: readonly Destination[], uid = 0): Promise<string[]> {
    const { input, lines } = this.#queryProcess(uid);
    const responses: string[] = [];
    for (const destination of destinations) {
      input.write(`${destination}\n`);
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`whoever asks ${destination} as ${uid} has ended`);
      responses.push(value);
    }
    return responses;
  }

  /** Starts one Python process per user, until the pod ends: starting it takes longer than a request. */
  #queryProcess(uid: number): QueryProcess {
    const cachedProcess = this.#queryProcesses.get(uid);
    if (cachedProcess !== undefined) return cachedProcess;
    const [program = '', ...args] = this.within([...python, `${uid}`, 'ask']);
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
    endWithRunner(child);
    this.#children.push(child);
    const queryProcess = {
      input: child.stdin,
      lines: createInterface({ input: child.stdout })[Symbol.asyncIterator](),
    };
    this.#queryProcesses.set(uid, queryProcess);
    return queryProcess;
  }

  /** @returns the command that runs the given one in the namespaces, in a folder of the machine */
  within(args: readonly string[], cwd = process.cwd()): string[] {
    const mounts = this.#mounts ? [`--mount=/proc/${this.pid}/ns/mnt`, `--wd=${cwd}`] : [];
    return ['nsenter', `--net=${this.namespaceFile}`, ...mounts, ...args];
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
    const [pod, neighbour] = await Promise.all([NetworkSide.make(children), NetworkSide.make(children)]);
    await link({ side: pod, name: 'eth0' }, { side: neighbour, name: 'eth0' });
    const addressesOf = ({ v4, v6 }: { v4: string; v6: string }): string[] => [
      `addr add ${v4}/24 dev eth0`,
      `addr add ${v6}/64 dev eth0 nodad`,
    ];
    const { v4, v6 } = addresses.neighbour;
    await Promise.all([
      neighbour.configure(addressesOf(addresses.neighbour)),
      pod.configure([...addressesOf(addresses.pod), `route add default via ${v4}`, `route add ::/0 via ${v6}`]),
    ]);
    // The kernel adds an IPv6 address's local route some time after the command has returned.
    await Promise.all(
      [neighbour, pod].map((side, index) => {
        const { v6: address } = [addresses.neighbour, addresses.pod][index]!;
        return eventually(`the route of ${address}`, async () => {
          const { stdout } = await side.run(['ip', '-6', 'route', 'show', 'table', 'local']);
          return stdout.includes(`local ${address} dev eth0`);
        });
      }),
    );
    return new PodNetwork(pod, neighbour, children);
  }

  /** Both namespaces disappear with their last process. */
  end(): Promise<void> {
    return endNamespaces(this.#children);
  }
}

/** Kills the processes that keep namespaces, and all listeners in them. */
export async function endNamespaces(children: readonly ChildProcess[]): Promise<void> {
  await Promise.all(
    children.map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }),
  );
}

interface LinkEnd {
  readonly side: NetworkSide;
  /** Name of its interface, at most 15 characters. */
  readonly name: string;
}

/** A veth pair between two namespaces, both ends up. */
export async function link(one: LinkEnd, other: LinkEnd): Promise<void> {
  const of = ({ side, name }: LinkEnd) => ['name', name, 'netns', `${side.pid}`];
  await execa('ip', ['link', 'add', ...of(one), 'type', 'veth', 'peer', ...of(other)]);
  for (const { side, name } of [one, other]) await side.mustRun('ip', 'link', 'set', name, 'up');
}

/** @returns the process that keeps a new namespace */
async function namespace(children: ChildProcess[], { mounts = false } = {}): Promise<number> {
  const child = spawn(
    'unshare',
    ['--net', ...(mounts ? ['--mount'] : []), 'sh', '-c', 'echo here; exec sleep infinity'],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    },
  );
  endWithRunner(child);
  children.push(child);
  for await (const _ of createInterface({ input: child.stdout })) return child.pid!;
  throw new Error('no network namespace can be made');
}
