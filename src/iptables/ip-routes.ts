/** Addresses and routes besides the rules (spec/agent.md §10.4). */
import type { Interception } from './interception.ts';
import type { CommandLine } from './rule-list.ts';

/** Where Envoy's inbound side connects from with IPv6; all of 127.0.0.0/8 is there by itself. */
const passthroughAddress = ['::6/128', 'dev', 'lo'];

/** In order; what is there already is no mistake. */
export function routeCommands(wanted: Interception): CommandLine[] {
  return [...addressCommands(wanted, 'add'), ...tproxyCommands(wanted, 'add')];
}

export function routeRemovals(wanted: Interception): CommandLine[] {
  return [...tproxyCommands(wanted, 'del'), ...addressCommands(wanted, 'del')];
}

function addressCommands({ ipv6 }: Interception, verb: 'add' | 'del'): CommandLine[] {
  return ipv6 ? [{ program: 'ip', args: ['-6', 'addr', verb, ...passthroughAddress] }] : [];
}

/** Marked packets are for this host, whatever their destination: only then are they given to a socket of it. */
function tproxyCommands(
  { mode, ipv6, tproxyMark, tproxyRouteTable }: Interception,
  verb: 'add' | 'del',
): CommandLine[] {
  if (mode !== 'TPROXY') return [];
  const families = ipv6 ? [[], ['-6']] : [[]];
  return families.flatMap((family) => [
    { program: 'ip', args: [...family, 'rule', verb, 'fwmark', `${tproxyMark}`, 'lookup', `${tproxyRouteTable}`] },
    {
      program: 'ip',
      args: [...family, 'route', verb, 'local', 'default', 'dev', 'lo', 'table', `${tproxyRouteTable}`],
    },
  ]);
}
