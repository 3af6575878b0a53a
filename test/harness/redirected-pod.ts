/** A pod whose traffic is redirected, checked by where connections arrive. Needs root and `npm run iptables`. */
import { expect, onTestFinished } from 'vitest';
import { applyInterception } from '../../src/iptables/apply.ts';
import type { GivenFlags } from '../../src/iptables/flags.ts';
import { type InterceptionOrder, resolveInterception } from '../../src/iptables/interception-settings.ts';
import { removeInterception } from '../../src/iptables/remove.ts';
import { addresses, type Destination, type NetworkSide, PodNetwork } from './pod-network.ts';

export const proxy = 1337;
export const application = 1000;
export const { pod: ownAddress, neighbour: other } = addresses;
/** Another address of the neighbour, in another subnet. */
export const outsideAddress = '10.88.0.1';

/** Two network namespaces, without listeners. */
export async function emptyPodNetwork(): Promise<PodNetwork> {
  const network = await PodNetwork.start();
  onTestFinished(() => network.end());
  return network;
}

/** A pod network with listeners in place of Envoy (15001, 15006, 15008), the agent (15053), applications and a neighbour's servers. */
export async function podNetwork(): Promise<PodNetwork> {
  const network = await emptyPodNetwork();
  const { pod, neighbour } = network;
  await neighbour.configure([`addr add ${outsideAddress}/32 dev lo`]);
  await Promise.all([
    neighbour.listen({
      ports: ['tcp 80', 'tcp 443', 'tcp 7777', 'tcp 53', `udp 53 ${other.v4} ${other.v6} ${outsideAddress}`],
    }),
    pod.listen({
      ports: ['tcp 15001', 'tcp 15006', 'tcp 15008', 'tcp 15053', 'udp 15053 127.0.0.1 ::1'],
      uid: proxy,
    }),
    pod.listen({ ports: ['tcp 8080', 'tcp 9999'], uid: application }),
  ]);
  return network;
}

/** Queries the destinations and expects the response of each. */
export async function expectResponses(
  side: NetworkSide,
  uid: number,
  expected: Record<Destination, string>,
): Promise<void> {
  const destinations = Object.keys(expected) as Destination[];
  const responses = await side.query(destinations, uid);
  expect(Object.fromEntries(destinations.map((destination, i) => [destination, responses[i]]))).toEqual(expected);
}

/** The state that a redirection may change, without counters and dates. */
export async function stateOf(side: NetworkSide): Promise<string> {
  const commands = [
    'iptables-save',
    'ip6tables-save',
    'nft -s list ruleset inet | sed s/counter//',
    'ip rule',
    'ip -6 rule',
    'ip route show table all',
    'ip -6 addr show dev lo',
  ];
  const { stdout } = await side.run(['sh', '-c', commands.join(';')]);
  // Reading a table creates it with its empty chains; a link's own address appears when the link comes up.
  const lines = stdout.split('\n').filter((line) => !/^($|#|\*|COMMIT|:[A-Z]+ ACCEPT)|fe80:/.test(line));
  return lines.join('\n');
}

/**
 * Runs the commands without a Node process for each.
 * @returns the events of their log
 */
export async function applyIn(side: NetworkSide, flags: GivenFlags, env: NodeJS.ProcessEnv = {}): Promise<string[]> {
  const log: string[] = [];
  await applyInterception(orderIn(side, flags, env), { print: () => {}, log: (event) => void log.push(event) });
  return log;
}

export async function cleanIn(side: NetworkSide, flags: GivenFlags = {}): Promise<string[]> {
  const log: string[] = [];
  const terminal = { print: (text: string) => log.push(text), log: (event: string) => void log.push(event) };
  await removeInterception(orderIn(side, { ...flags, cleanupOnly: true }, {}), terminal);
  return log;
}

function orderIn(side: NetworkSide, flags: GivenFlags, env: NodeJS.ProcessEnv): InterceptionOrder {
  return resolveInterception({ ...flags, networkNamespace: side.namespaceFile }, env, {
    addresses: () => [ownAddress.v4],
    readFile: (path) => (path === '/etc/resolv.conf' ? `nameserver ${other.v4}\nnameserver ${other.v6}\n` : ''),
  });
}
