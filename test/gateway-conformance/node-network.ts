/**
 * Network of one node in the namespace of this process: a bridge, and a network namespace with an address for each pod.
 */
import type { ChildProcess } from 'node:child_process';
import { execa } from 'execa';
import { endNamespaces, NetworkSide } from '../harness/pod-network.ts';

/** Address of API server, control plane and suite. */
export const nodeAddress = '10.244.0.1';
const bridge = 'pods';
/** Number of addresses that the network has for pods. */
const maxPods = 250 * 250;

export interface PodNamespace {
  readonly address: string;
  /** Command that runs a program in the pod's network and mount namespaces. */
  within(args: readonly string[], cwd: string): string[];
  end(): Promise<void>;
}

export class NodeNetwork {
  #pods = 0;

  /** Creates the bridge. The process must be in a separate network namespace. */
  async start(): Promise<void> {
    for (const args of [
      ['link', 'set', 'lo', 'up'],
      ['link', 'add', bridge, 'type', 'bridge'],
      ['addr', 'add', `${nodeAddress}/16`, 'dev', bridge],
      ['link', 'set', bridge, 'up'],
    ]) {
      await execa('ip', args);
    }
  }

  async addPod(): Promise<PodNamespace> {
    const number = ++this.#pods;
    if (number > maxPods) throw new Error(`the node has no address for pod ${number}`);
    const address = `10.244.${1 + Math.floor(number / 250)}.${1 + (number % 250)}`;
    const children: ChildProcess[] = [];
    const side = await NetworkSide.make(children, { mounts: true });
    const podLink = ['name', 'eth0', 'netns', `${side.pid}`];
    const link = `pod${number}`;
    await execa('ip', ['link', 'add', link, 'type', 'veth', 'peer', ...podLink]);
    await execa('ip', ['link', 'set', link, 'master', bridge, 'up']);
    await side.configure([
      `addr add ${address}/16 dev eth0`,
      'link set eth0 up',
      `route add default via ${nodeAddress}`,
    ]);
    // Gateways bind ports such as 80.
    await side.mustRun('sh', '-c', 'echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start');
    return {
      address,
      within: (args, cwd) => side.within(args, cwd),
      end: () => endNamespaces(children),
    };
  }
}
