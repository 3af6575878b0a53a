/**
 * The agent in its own namespaces, as a container runtime starts it: first process of its PID namespace, private mounts, optionally another
 * user. The network is the host's. Needs root, as container runtimes do.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { eventually } from './eventually.ts';
import { signalIfAlive } from './host-processes.ts';
import { type Exit, Program, type ProgramOptions } from './program.ts';

export interface ContainerOptions extends ProgramOptions {
  /** Shell commands that run within the namespaces before the agent, such as mounts. */
  readonly prepare?: readonly string[];
  /** User ID of the agent (default: root). */
  readonly uid?: number;
}

export interface ProcessStatus {
  /** Name of the process; `port-stand-in` from its start, even while it is still a Node process. */
  readonly name: string;
  readonly state: string;
  readonly parentPid: number;
  /** Signals that it has a handler for, one bit each. */
  readonly caught: bigint;
}

export class Container {
  readonly program: Program;
  /** PID of its first process, on the host. */
  readonly pid: number;
  /** Working directory of the first process. */
  readonly cwd: string;

  private constructor(program: Program, pid: number, cwd: string) {
    this.program = program;
    this.pid = pid;
    this.cwd = cwd;
  }

  /** Resolves when bin/pilot-agent has a SIGTERM handler: without one, the kernel drops the signal for process 1. */
  static async start({ prepare = [], uid, args, ...options }: ContainerOptions): Promise<Container> {
    const user = uid === undefined ? [] : ['setpriv', '--reuid', `${uid}`, '--regid', `${uid}`, '--clear-groups'];
    const script = [...prepare, 'exec setsid "$@"'].join(' && ');
    const program = Program.run('pilot-agent in a container', 'unshare', {
      ...options,
      args: [
        ...['--pid', '--fork', '--kill-child', '--mount', '--mount-proc', 'sh', '-c', script, 'sh'],
        ...[...user, join(packageRoot(), 'bin/pilot-agent'), ...args],
      ],
    });
    const pid = await eventually('the container has a first process', () => firstChildOf(program.pid), { everyMs: 1 });
    const container = new Container(program, pid, options.cwd);
    await eventually('the first process is bin/pilot-agent, and hears SIGTERM', () => container.handlesTerm(), {
      everyMs: 1,
      hopeless: () => program.hopeless(),
    });
    return container;
  }

  handlesTerm(): boolean {
    const status = statusOf(this.pid);
    if (status === undefined) return false;
    return !['unshare', 'sh', 'setsid', 'setpriv'].includes(status.name) && (status.caught & (1n << 14n)) !== 0n;
  }

  /** Sends the signal only to the first process, as a container runtime does. */
  signal(signal: NodeJS.Signals): void {
    if (this.program.exit === undefined) signalIfAlive(this.pid, signal);
  }

  /** Sends the signal to the process group of the first process, as a terminal does. */
  signalFromTerminal(signal: NodeJS.Signals): void {
    process.kill(-this.pid, signal);
  }

  /** Processes whose parent is the first one. */
  children(): (ProcessStatus & { readonly pid: number })[] {
    return childrenOf(this.pid).flatMap((pid) => {
      const status = statusOf(pid);
      return status === undefined ? [] : [{ ...status, pid }];
    });
  }

  /** PIDs of the agents: children that are a live Node process. */
  agents(): number[] {
    return this.children()
      .filter(({ name, state }) => ['node', 'MainThread'].includes(name) && state !== 'Z')
      .map(({ pid }) => pid);
  }

  /** An exited process is a zombie until the first process has reaped it. Fails if a zombie remains. */
  async hasNoZombie(): Promise<void> {
    await eventually('no zombie is left', () => this.children().every(({ state }) => state !== 'Z'), {
      hopeless: () => this.program.hopeless(),
    });
  }

  /** Runs a command in its namespaces, as `kubectl exec` does. */
  exec(...command: string[]): Program {
    return Program.run('exec', 'nsenter', {
      args: ['--target', String(this.pid), '--pid', '--mount', ...command],
      cwd: '/',
      env: process.env,
    });
  }

  async ended(): Promise<Exit> {
    return this.program.exited;
  }
}

function firstChildOf(pid: number): number | undefined {
  return childrenOf(pid)[0];
}

function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return text.split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

export function statusOf(pid: number): ProcessStatus | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8');
    const field = (name: string): string => new RegExp(`^${name}:\\t(\\S+)`, 'm').exec(text)?.[1] ?? '0';
    const isStandIn = readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('port-stand-in');
    const [name, state] = [isStandIn ? 'port-stand-in' : field('Name'), field('State')];
    return { name, state, parentPid: Number(field('PPid')), caught: BigInt(`0x${field('SigCgt')}`) };
  } catch {
    return undefined;
  }
}
