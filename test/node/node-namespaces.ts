/**
 * Namespaces of a node: network, mounts and processes. They have one first process, whose end ends all other processes in them, and with
 * these the kernel removes mounts, interfaces and iptables rules. So nothing of a node outlives a test run that was killed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { execa } from 'execa';
import { eventually } from '../harness/eventually.ts';
import { endWithRunner } from '../harness/runner-watch.ts';

/**
 * Folders of the machine that containerd, CNI plugins and kubelet write to regardless of their settings, hidden below empty ones. The first
 * process also reaps processes whose parent has exited, as a container runtime leaves some.
 */
const firstProcess = `set -e
for folder in /run /var/log /var/lib; do mount -t tmpfs -o mode=755 tmpfs "$folder"; done
mkdir -p /run/netns
echo ready
while :; do sleep 3600 & wait; done
`;

export class NodeNamespaces {
  readonly #child: ChildProcess;
  /** Of the first process, as this machine sees it. */
  readonly pid: number;

  private constructor(child: ChildProcess, pid: number) {
    this.#child = child;
    this.pid = pid;
  }

  static async create(): Promise<NodeNamespaces> {
    const unshare = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
    const child = spawn('unshare', [...unshare, 'sh', '-c', firstProcess], {
      ...{ detached: true, stdio: ['ignore', 'pipe', 'pipe'] },
    });
    endWithRunner(child);
    let stderr = '';
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const ready = once(child.stdout!, 'data').then(() => true);
    const isReady = await Promise.race([ready, once(child, 'close').then(() => false)]);
    if (!isReady) throw new Error(`no namespaces for a node: ${stderr}`);
    const pid = await eventually('the namespaces have a first process', () => childOf(child.pid!), { everyMs: 5 });
    return new NodeNamespaces(child, pid);
  }

  /** Command that runs another one in these namespaces. */
  get prefix(): readonly string[] {
    return ['nsenter', '--target', `${this.pid}`, '--net', '--mount', '--pid'];
  }

  /** The same for the network alone: the process belongs to its starter. */
  get networkPrefix(): readonly string[] {
    return ['nsenter', '--target', `${this.pid}`, '--net'];
  }

  /** @throws Error with the output of a command that fails */
  async run(command: readonly string[], input = ''): Promise<string> {
    const [program = '', ...args] = [...this.prefix, ...command];
    return (await execa(program, args, { input })).stdout;
  }

  /** Ends all processes in them. */
  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    process.kill(this.pid, 'SIGKILL');
    await exited;
  }
}

/** The first child of a process, as this machine sees both. */
export function childOf(pid: number): number | undefined {
  const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ');
  return Number(first) || undefined;
}
