/** The rules are in Istio's order (row numbers in comments), because the kernel applies the first matching rule. */
import { isLoopback } from '../runtime/addresses/loopback.ts';
import { dnsCapturePort, type Interception, type IpFamily, ipFamilies } from './interception.ts';
import type { Action, Match, OwnerKind, Rule, Table } from './rule.ts';
import { targetOf } from './rule-list.ts';

const inbound = 'ISTIO_INBOUND';
const output = 'ISTIO_OUTPUT';
const outputDns = 'ISTIO_OUTPUT_DNS';
const redirect = 'ISTIO_REDIRECT';
const inboundRedirect = 'ISTIO_IN_REDIRECT';
const divertChain = 'ISTIO_DIVERT';
const tproxy = 'ISTIO_TPROXY';
const drop = 'ISTIO_DROP';

/** Marks packets from Envoy's outbound to its inbound listener with TPROXY. */
export const outboundMark = 1338;

/** Connections from Envoy's inbound listener have this source address. */
const passthrough: Readonly<Record<IpFamily, string>> = { v4: '127.0.0.6/32', v6: '::6/128' };
const hostBits: Readonly<Record<IpFamily, number>> = { v4: 32, v6: 128 };

const tcp: Match = { kind: 'protocol', protocol: 'tcp' };
const udp: Match = { kind: 'protocol', protocol: 'udp' };
const outputLoopbackMatch: Match = { kind: 'interface', direction: 'o', name: 'lo' };
const inputLoopbackMatch: Match = { kind: 'interface', direction: 'i', name: 'lo' };
const establishedMatch: Match = { kind: 'connectionState', states: ['RELATED', 'ESTABLISHED'] };
const dport = (...ports: number[]): Match => ({ kind: 'port', side: 'd', ports });
const notDport = (...ports: number[]): Match => ({ kind: 'port', side: 'd', ports, not: true });
const sport = (port: number): Match => ({ kind: 'port', side: 's', ports: [port] });
const destinationRange = (range: string): Match => ({ kind: 'address', side: 'd', range });
const notDestinationRange = (range: string): Match => ({ kind: 'address', side: 'd', range, not: true });
const sourceRange = (range: string): Match => ({ kind: 'address', side: 's', range });
const inputInterface = (name: string): Match => ({ kind: 'interface', direction: 'i', name });
const ownerMatch = ({ kind, id }: Owner): Match => ({ kind: 'owner', owner: kind, id });
const notOwnedBy = ({ kind, id }: Owner): Match => ({ kind: 'owner', owner: kind, id, not: true });
const markMatch = (mark: number): Match => ({ kind: 'mark', mark });

const returns: Action = { kind: 'return' };
const jump = (chain: string): Action => ({ kind: 'jump', chain });
const redirectAction = (port: number): Action => ({ kind: 'redirect', port });
const zoneAction = (zone: number): Action => ({ kind: 'zone', zone });

interface Owner {
  readonly kind: OwnerKind;
  readonly id: string;
}

type RuleOfTable = (chain: string, matches: readonly Match[], action: Action) => Rule;
const ruleIn =
  (table: Table): RuleOfTable =>
  (chain, matches, action) => ({ table, chain, matches, action });
const nat = ruleIn('nat');
const mangle = ruleIn('mangle');
const rawTableRule = ruleIn('raw');
const withPosition = (position: number, rule: Rule): Rule => ({ ...rule, position });

function rulesPerFamily(rulesOf: (family: IpFamily) => Rule | readonly Rule[]): Rule[] {
  return ipFamilies.flatMap((family) => [rulesOf(family)].flat().map((rule): Rule => ({ ...rule, family })));
}

/** Contains rules of both families, even if `ipv6` is off. */
export function interceptionRules(interception: Interception): Rule[] {
  const { generation, kubevirtInterfaces, outboundPortsExclude } = interception;
  const localhost = localhostOf(interception);
  const rules = [
    ...excludedInterfaces(interception), // 1
    ...kubevirtInterfaces.map((nic) => withPosition(1, nat('PREROUTING', [inputInterface(nic)], returns))), // 2
    ...dropInvalidRules(interception), // 3
    ...redirectChains(interception), // 4
    ...inboundRules(interception), // 5, 6, 7
    nat('OUTPUT', generation === 'g3' ? [tcp] : [], jump(output)), // 8
    ...outboundPortsExclude.flatMap((port) =>
      protocolsOf(interception).map((p) => nat(output, [p, dport(port)], returns)),
    ), // 9
    ...rulesPerFamily((family) => nat(output, [outputLoopbackMatch, sourceRange(passthrough[family])], returns)), // 10
    ...owners(interception).flatMap((owner) => proxyTraffic(interception, owner)), // 11, 12
    ...ownerGroupMatches(interception).map((matches) => nat(output, matches, returns)), // 13
    ...(interception.redirectDns ? dnsRules(interception) : []), // 14, 19 of G4
    ...rulesPerFamily((family) => nat(output, [destinationRange(localhost[family])], returns)), // 15
    ...rulesPerFamily((family) =>
      interception.outboundRangesExclude[family].map((range) => nat(output, [destinationRange(range)], returns)),
    ), // 16
    ...interception.outboundPorts.map((port) => nat(output, [tcp, dport(port)], jump(redirect))), // 17
    ...outboundRanges(interception), // 18
    ...(interception.redirectDns && generation === 'g3' ? dnsOverUdp(interception) : []), // 19
    ...(interception.mode === 'TPROXY' ? tproxyMarks(interception) : []), // 20
  ];
  return interception.traceLogging ? rules.flatMap(withLogRule) : rules;
}

/** An application uses these addresses to connect to itself. They are neither redirected, nor treated as the proxy's connection to its own pod. */
function localhostOf({ loopbackRange }: Interception): Readonly<Record<IpFamily, string>> {
  return { v4: loopbackRange, v6: '::1/128' };
}

/** G4 sends all protocols through ISTIO_OUTPUT, as DNS over UDP requires. */
function protocolsOf({ generation }: Interception): Match[] {
  return generation === 'g3' ? [tcp] : [tcp, udp];
}

function excludedInterfaces({ excludeInterfaces, mode }: Interception): Rule[] {
  const rulesInTable = (table: Table): Rule[] =>
    excludeInterfaces.flatMap((name) => [
      ruleIn(table)('PREROUTING', [inputInterface(name)], returns),
      ruleIn(table)('OUTPUT', [{ kind: 'interface', direction: 'o', name }], returns),
    ]);
  return mode === 'TPROXY' ? [...rulesInTable('nat'), ...rulesInTable('mangle')] : rulesInTable('nat');
}

/** On out-of-window packets, the kernel would reset the application's connection. */
function dropInvalidRules({ dropInvalid: isEnabled, generation }: Interception): Rule[] {
  if (!isEnabled) return [];
  const invalidState: Match = { kind: 'connectionState', states: ['INVALID'] };
  if (generation === 'g3') return [mangle('PREROUTING', [invalidState], { kind: 'drop' })];
  return [mangle('PREROUTING', [invalidState], jump(drop)), mangle(drop, [], { kind: 'drop' })];
}

function redirectChains({ inboundTunnelPort, proxyPort, inboundCapturePort }: Interception): Rule[] {
  return [
    nat(inbound, [tcp, dport(inboundTunnelPort)], returns),
    nat(redirect, [tcp], redirectAction(proxyPort)),
    nat(inboundRedirect, [tcp], redirectAction(inboundCapturePort)),
  ];
}

function inboundRules(interception: Interception): Rule[] {
  const { mode, inboundPorts, inboundPortsExclude } = interception;
  if (inboundPorts.length === 0) return [];
  const targetTable = mode === 'TPROXY' ? mangle : nat;
  // Only the first packet needs the proxy's port: established connections already have a socket.
  const capture = (...port: Match[]): Rule[] =>
    mode === 'TPROXY'
      ? [
          mangle(inbound, [tcp, ...port, establishedMatch], jump(divertChain)),
          mangle(inbound, [tcp, ...port], jump(tproxy)),
        ]
      : [nat(inbound, [tcp, ...port], jump(inboundRedirect))];
  return [
    ...(mode === 'TPROXY' ? tproxyChains(interception) : []),
    targetTable('PREROUTING', [tcp], jump(inbound)),
    ...(inboundPorts === '*'
      ? [...inboundPortsExclude.map((port) => targetTable(inbound, [tcp, dport(port)], returns)), ...capture()]
      : inboundPorts.flatMap((port) => capture(dport(port)))),
  ];
}

function tproxyChains(interception: Interception): Rule[] {
  const { tproxyMark: mark, inboundCapturePort: port } = interception;
  return [
    mangle(divertChain, [], { kind: 'setMark', mark }),
    mangle(divertChain, [], { kind: 'accept' }),
    ...rulesPerFamily((family) =>
      mangle(tproxy, [notDestinationRange(localhostOf(interception)[family]), tcp], { kind: 'tproxy', port, mark }),
    ),
  ];
}

function owners({ proxyUids, proxyGids }: Interception): Owner[] {
  return [
    ...proxyUids.map((id): Owner => ({ kind: 'uid', id })),
    ...proxyGids.map((id): Owner => ({ kind: 'gid', id })),
  ];
}

/**
 * An application's connection to its own Service address passes the proxy's inbound listener; a connection to localhost or the pod address does not.
 * The proxy's own connections are not redirected again.
 */
function proxyTraffic(interception: Interception, owner: Owner): Rule[] {
  const { redirectDns, outboundRanges: ranges } = interception;
  const hasLoopbackRange = [ranges.v4, ranges.v6].some((range) => range !== '*' && range.some(startsInLoopback));
  const notDnsMatches = redirectDns ? [tcp, notDport(53)] : [];
  return [
    ...rulesPerFamily((family) =>
      nat(
        output,
        [
          outputLoopbackMatch,
          notDestinationRange(localhostOf(interception)[family]),
          ...selfTrafficMatches(interception, owner.kind),
          ownerMatch(owner),
        ],
        jump(inboundRedirect),
      ),
    ),
    // Queries to a name server on loopback go through the agent like all other queries.
    ...(hasLoopbackRange ? [] : [nat(output, [outputLoopbackMatch, ...notDnsMatches, notOwnedBy(owner)], returns)]),
    nat(output, [ownerMatch(owner)], returns),
  ];
}

/** The agent's queries to a name server of this pod bypass Envoy; G3 has no such exception for groups. */
function selfTrafficMatches({ generation, redirectDns, inboundTunnelPort }: Interception, kind: OwnerKind): Match[] {
  if (generation === 'g4') return [tcp, notDport(...(redirectDns ? [53] : []), inboundTunnelPort)];
  return redirectDns && kind === 'uid' ? [tcp, notDport(53)] : [];
}

function startsInLoopback(range: string): boolean {
  return isLoopback(range.slice(0, range.indexOf('/')));
}

function ownerGroupMatches({ ownerGroups: { captured, groups } }: Interception): Match[][] {
  if (captured === 'all-but') return groups.map((id) => [ownerMatch({ kind: 'gid', id })]);
  return [groups.map((id) => notOwnedBy({ kind: 'gid', id }))];
}

function rulesPerDnsServer(
  interception: Interception,
  rulesOf: (toServer: Match[], fromServer: Match[]) => readonly Rule[],
): Rule[] {
  if (interception.captureAllDns) return [...rulesOf([], [])];
  return rulesPerFamily((family) =>
    interception.dnsServers[family].flatMap((server) => {
      const range = `${server}/${hostBits[family]}`;
      return rulesOf([destinationRange(range)], [sourceRange(range)]);
    }),
  );
}

const tcpDnsMatches = [tcp, dport(53)];
const udpDnsMatches = [udp, dport(53)];

/** G3 captures DNS over TCP in ISTIO_OUTPUT, and over UDP in OUTPUT; G4 captures both in a separate chain. */
function dnsRules(interception: Interception): Rule[] {
  const redirection = redirectAction(dnsCapturePort);
  const capture = (chain: string, query: readonly Match[]): Rule[] =>
    rulesPerDnsServer(interception, (server) => [nat(chain, [...query, ...server], redirection)]);
  if (interception.generation === 'g3') return capture(output, tcpDnsMatches);
  return [
    ...rulesForDnsServers(interception, nat(output, [], jump(outputDns))),
    ...capture(outputDns, tcpDnsMatches),
    ...capture(outputDns, udpDnsMatches),
    rawTableRule('OUTPUT', [], jump(outputDns)),
    ...connectionZones(interception, outputDns),
    ...rulesForDnsServers(interception, rawTableRule('PREROUTING', [], jump(inbound))),
    ...rulesPerDnsServer(interception, (_, server) => [
      rawTableRule(inbound, [udp, sport(53), ...server], zoneAction(1)),
    ]),
  ];
}

/** Omits the rule in a family without name servers, because the target chain would be empty. */
function rulesForDnsServers(interception: Interception, rule: Rule): Rule[] {
  if (interception.captureAllDns) return [rule];
  return rulesPerFamily((family) => (interception.dnsServers[family].length === 0 ? [] : rule));
}

function dnsOverUdp(interception: Interception): Rule[] {
  return [
    ...owners(interception).map((owner) => nat('OUTPUT', [...udpDnsMatches, ownerMatch(owner)], returns)),
    ...ownerGroupMatches(interception).map((matches) => nat('OUTPUT', [...udpDnsMatches, ...matches], returns)),
    ...rulesPerDnsServer(interception, (server) => [
      nat('OUTPUT', [...udpDnsMatches, ...server], redirectAction(dnsCapturePort)),
    ]),
    ...connectionZones(interception, 'OUTPUT', (server) => [
      rawTableRule('PREROUTING', [udp, sport(53), ...server], zoneAction(1)),
    ]),
  ];
}

/**
 * The queries of application and agent have the same addresses and ports. Without zones, connection tracking would merge them, and responses would be
 * lost.
 */
function connectionZones(
  interception: Interception,
  chain: string,
  responses: (fromServer: Match[]) => readonly Rule[] = () => [],
): Rule[] {
  return [
    ...owners(interception).flatMap((owner) => [
      rawTableRule(chain, [...udpDnsMatches, ownerMatch(owner)], zoneAction(1)),
      rawTableRule(chain, [udp, sport(dnsCapturePort), ownerMatch(owner)], zoneAction(2)),
    ]),
    ...rulesPerDnsServer(interception, (server, fromServer) => [
      rawTableRule(chain, [...udpDnsMatches, ...server], zoneAction(2)),
      ...responses(fromServer),
    ]),
  ];
}

function outboundRanges({ outboundRanges: ranges, kubevirtInterfaces }: Interception): Rule[] {
  const fromVirtualMachines = (...range: Match[]): Rule[] =>
    kubevirtInterfaces.map((nic) =>
      withPosition(1, nat('PREROUTING', [inputInterface(nic), ...range], jump(redirect))),
    );
  if (ranges.v4 === '*' && ranges.v6 === '*') return [nat(output, [], jump(redirect)), ...fromVirtualMachines()];
  return rulesPerFamily((family) => {
    const familyRanges = ranges[family];
    if (familyRanges === '*' || familyRanges.length === 0) return [];
    return [
      ...familyRanges.flatMap((range) => [
        ...fromVirtualMachines(destinationRange(range)),
        nat(output, [destinationRange(range)], jump(redirect)),
      ]),
      nat(output, [], returns),
    ];
  });
}

function tproxyMarks(interception: Interception): Rule[] {
  const { tproxyMark: mark } = interception;
  const localhost = localhostOf(interception);
  const notOutboundMark: Match = { kind: 'mark', mark: outboundMark, not: true };
  return [
    // Envoy sets this mark on connections with the client's source address, so that the responses return to Envoy.
    mangle('PREROUTING', [tcp, markMatch(mark)], { kind: 'saveMark' }),
    mangle('OUTPUT', [tcp, outputLoopbackMatch, markMatch(mark)], returns),
    ...owners(interception).flatMap((owner) =>
      rulesPerFamily((family) =>
        mangle('OUTPUT', [notDestinationRange(localhost[family]), tcp, outputLoopbackMatch, ownerMatch(owner)], {
          kind: 'setMark',
          mark: outboundMark,
        }),
      ),
    ),
    mangle('OUTPUT', [tcp, { kind: 'connectionMark', mark }], { kind: 'restoreMark' }),
    withPosition(1, mangle(inbound, [tcp, markMatch(mark)], returns)),
    ...rulesPerFamily((family) =>
      withPosition(2, mangle(inbound, [tcp, sourceRange(passthrough[family]), inputLoopbackMatch], returns)),
    ),
    withPosition(3, mangle(inbound, [tcp, inputLoopbackMatch, notOutboundMark], returns)),
  ];
}

/** The log prefix contains the chain and target of the rule. */
function withLogRule(rule: Rule): Rule[] {
  // Log rules would shift insert positions, so inserted rules are not logged.
  if (rule.position !== undefined) return [rule];
  return [{ ...rule, action: { kind: 'log', prefix: `${rule.chain}>${targetOf(rule.action)}` } }, rule];
}
