/**
 * Network, mount and process namespaces of a node. When their first process exits, all other processes in them exit, and the kernel removes mounts,
 * interfaces and iptables rules. So a killed test run leaves nothing behind.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { execa } from 'execa';
import { eventually } from '../harness/eventually.ts';
import { endWithRunner } from '../harness/runner-watch.ts';

/**
 * Hides folders of the machine that containerd, CNI plugins and kubelet write regardless of their settings. The first process also reaps processes
 * orphaned by a container runtime.
 */
const firstProcess = `set -e
for folder in /run /var/log /var/lib; do mount -t tmpfs -o mode=755 tmpfs "$folder"; done
mkdir -p /run/netns
echo ready
while :; do sleep 3600 & wait; done
`;

export class NodeNamespaces {
  readonly #child: ChildProcess;
  /** PID of the first process, as this machine sees it. */
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

  /** Like `prefix`, only for the network: the process exits with its starter. */
  get networkPrefix(): readonly string[] {
    return ['nsenter', '--target', `${this.pid}`, '--net'];
  }

  /** @throws Error with the output of a failed command */
  async run(command: readonly string[], input = ''): Promise<string> {
    const [program = '', ...args] = [...this.prefix, ...command];
    return (await execa(program, args, { input })).stdout;
  }

  /** Ends all processes in the namespaces. */
  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exitEvent = once(this.#child, 'exit');
    process.kill(this.pid, 'SIGKILL');
    await exitEvent;
  }
}

/** The first child of a process, as this machine sees both. */
export function childOf(pid: number): number | undefined {
  const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ');
  return Number(first) || undefined;
}
