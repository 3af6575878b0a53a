/**
 * The rules that redirect a pod's traffic to Envoy, in the order of spec/agent.md §10.2 (numbers of rows in brackets).
 * The kernel takes the first rule that matches: the order is what they mean.
 */
import { isLoopback } from '../runtime/loopback.ts';
import { dnsCapturePort, type Interception, type IpFamily } from './interception.ts';
import type { Rule, Table } from './rule-list.ts';

const inbound = 'ISTIO_INBOUND';
const output = 'ISTIO_OUTPUT';
const redirect = 'ISTIO_REDIRECT';
const inboundRedirect = 'ISTIO_IN_REDIRECT';
const divert = 'ISTIO_DIVERT';
const tproxy = 'ISTIO_TPROXY';

/** Of packets from Envoy's outbound side to its inbound side, within TPROXY. */
const outboundMark = 1338;

/** `localhost` is the application's own; `passthrough` is where Envoy's inbound side connects from. */
const addresses: Readonly<Record<IpFamily, { localhost: string; passthrough: string; hostBits: number }>> = {
  v4: { localhost: '127.0.0.1/32', passthrough: '127.0.0.6/32', hostBits: 32 },
  v6: { localhost: '::1/128', passthrough: '::6/128', hostBits: 128 },
};

const tcp = ['-p', 'tcp'];
const udp = ['-p', 'udp'];
const dport = (port: number): string[] => ['--dport', `${port}`];
const sport = (port: number): string[] => ['--sport', `${port}`];
const to = (address: string): string[] => ['-d', address];
const notTo = (address: string): string[] => ['!', '-d', address];
const jump = (target: string): string[] => ['-j', target];
const owner = (kind: OwnerKind, id: string): string[] => ['-m', 'owner', `--${kind}-owner`, id];
const notOwner = (kind: OwnerKind, id: string): string[] => ['-m', 'owner', '!', `--${kind}-owner`, id];
const marked = (mark: number): string[] => ['-m', 'mark', '--mark', `${mark}`];
const connectionZone = (zone: number): string[] => ['-j', 'CT', '--zone', `${zone}`];
const established = ['-m', 'conntrack', '--ctstate', 'RELATED,ESTABLISHED'];
const viaLoopback = ['-o', 'lo'];

type OwnerKind = 'uid' | 'gid';

interface Owner {
  readonly kind: OwnerKind;
  readonly id: string;
}

const nat = (chain: string, ...words: string[]): Rule => ({ table: 'nat', chain, words });
const mangle = (chain: string, ...words: string[]): Rule => ({ table: 'mangle', chain, words });
const raw = (chain: string, ...words: string[]): Rule => ({ table: 'raw', chain, words });
const inserted = (position: number, rule: Rule): Rule => ({ ...rule, position });

/** All rules of one family. Those of IPv6 are made also where they are not applied: whoever applies them decides. */
export function interceptionRules(wanted: Interception, family: IpFamily): Rule[] {
  const rules = [
    ...excludedInterfaces(wanted), // 1
    ...wanted.kubevirtInterfaces.map((nic) => inserted(1, nat('PREROUTING', '-i', nic, ...jump('RETURN')))), // 2
    ...(wanted.dropInvalid ? [dropInvalid] : []), // 3
    ...redirectChains(wanted), // 4
    ...inboundRules(wanted, family), // 5, 6, 7
    nat('OUTPUT', ...(wanted.generation === 'g3' ? tcp : []), ...jump(output)), // 8
    ...wanted.outboundPortsExclude.map((port) => nat(output, ...tcp, ...dport(port), ...jump('RETURN'))), // 9
    nat(output, ...viaLoopback, '-s', addresses[family].passthrough, ...jump('RETURN')), // 10
    ...owners(wanted).flatMap((one) => ownTraffic(wanted, one, family)), // 11, 12
    ...ownerGroupRules(wanted).map((words) => nat(output, ...words)), // 13
    ...dnsTargets(wanted, family).map((target) => nat(output, ...tcp, ...dport(53), ...target, ...redirectTo('tcp'))), // 14
    nat(output, ...to(addresses[family].localhost), ...jump('RETURN')), // 15
    ...wanted.outboundRangesExclude[family].map((range) => nat(output, ...to(range), ...jump('RETURN'))), // 16
    ...wanted.outboundPorts.map((port) => nat(output, ...tcp, ...dport(port), ...jump(redirect))), // 17
    ...outboundRanges(wanted, family), // 18
    ...(wanted.redirectDns ? dnsOverUdp(wanted, family) : []), // 19
    ...(wanted.mode === 'TPROXY' ? tproxyMarks(wanted, family) : []), // 20
  ];
  return wanted.traceLogging ? rules.flatMap(traced) : rules;
}

function excludedInterfaces({ excludeInterfaces, mode }: Interception): Rule[] {
  const within = (table: Table): Rule[] =>
    excludeInterfaces.flatMap((nic) => [
      { table, chain: 'PREROUTING', words: ['-i', nic, ...jump('RETURN')] },
      { table, chain: 'OUTPUT', words: ['-o', nic, ...jump('RETURN')] },
    ]);
  return mode === 'TPROXY' ? [...within('nat'), ...within('mangle')] : within('nat');
}

/** Packets outside of the window would be answered by a reset of the application's connection. */
const dropInvalid = mangle('PREROUTING', '-m', 'conntrack', '--ctstate', 'INVALID', ...jump('DROP'));

function redirectChains({ inboundTunnelPort, proxyPort, inboundCapturePort }: Interception): Rule[] {
  const ports = (port: number): string[] => [...jump('REDIRECT'), '--to-ports', `${port}`];
  return [
    nat(inbound, ...tcp, ...dport(inboundTunnelPort), ...jump('RETURN')),
    nat(redirect, ...tcp, ...ports(proxyPort)),
    nat(inboundRedirect, ...tcp, ...ports(inboundCapturePort)),
  ];
}

function inboundRules(wanted: Interception, family: IpFamily): Rule[] {
  const { mode, inboundPorts, inboundPortsExclude } = wanted;
  if (inboundPorts.length === 0) return [];
  const into = mode === 'TPROXY' ? mangle : nat;
  // What is known of a connection is in its socket already: only its first packet needs the proxy's port.
  const capture = (port: readonly string[]): Rule[] =>
    mode === 'TPROXY'
      ? [
          mangle(inbound, ...tcp, ...port, ...established, ...jump(divert)),
          mangle(inbound, ...tcp, ...port, ...jump(tproxy)),
        ]
      : [nat(inbound, ...tcp, ...port, ...jump(inboundRedirect))];
  return [
    ...(mode === 'TPROXY' ? tproxyChains(wanted, family) : []),
    into('PREROUTING', ...tcp, ...jump(inbound)),
    ...(inboundPorts === '*'
      ? [...inboundPortsExclude.map((port) => into(inbound, ...tcp, ...dport(port), ...jump('RETURN'))), ...capture([])]
      : inboundPorts.flatMap((port) => capture(dport(port)))),
  ];
}

function tproxyChains({ tproxyMark, inboundCapturePort }: Interception, family: IpFamily): Rule[] {
  const target = ['--tproxy-mark', `${tproxyMark}/0xffffffff`, '--on-port', `${inboundCapturePort}`];
  return [
    mangle(divert, ...jump('MARK'), '--set-mark', `${tproxyMark}`),
    mangle(divert, ...jump('ACCEPT')),
    mangle(tproxy, ...notTo(addresses[family].localhost), ...tcp, ...jump('TPROXY'), ...target),
  ];
}

/** Users first, then groups: as whom the proxy runs. */
function owners({ proxyUids, proxyGids }: Interception): Owner[] {
  return [
    ...proxyUids.map((id): Owner => ({ kind: 'uid', id })),
    ...proxyGids.map((id): Owner => ({ kind: 'gid', id })),
  ];
}

/**
 * What goes through loopback, and what the proxy itself sends: a call of the application to itself by its service's
 * address comes back through the proxy's inbound side; one by localhost or its own address does not, and nothing of the
 * proxy's is redirected to it again.
 */
function ownTraffic(wanted: Interception, { kind, id }: Owner, family: IpFamily): Rule[] {
  const { redirectDns, outboundRanges: ranges } = wanted;
  const notDns = [...tcp, '!', ...dport(53)];
  const toLoopback = [ranges.v4, ranges.v6].some((range) => range !== '*' && range.some(leadsToLoopback));
  return [
    nat(
      output,
      ...[...viaLoopback, ...notTo(addresses[family].localhost), ...backToSelf(wanted, kind)],
      ...[...owner(kind, id), ...jump(inboundRedirect)],
    ),
    // A name server on loopback is asked through the agent like any other.
    ...(toLoopback
      ? []
      : [nat(output, ...viaLoopback, ...(redirectDns ? notDns : []), ...notOwner(kind, id), ...jump('RETURN'))]),
    nat(output, ...owner(kind, id), ...jump('RETURN')),
  ];
}

/** The agent's questions to a name server of this pod do not go through Envoy; groups have no such exception in G3. */
function backToSelf({ generation, redirectDns, inboundTunnelPort }: Interception, kind: OwnerKind): string[] {
  if (redirectDns && (kind === 'uid' || generation === 'g4')) return [...tcp, '!', ...dport(53)];
  return generation === 'g4' ? [...tcp, '!', ...dport(inboundTunnelPort)] : [];
}

function leadsToLoopback(range: string): boolean {
  return isLoopback(range.slice(0, range.indexOf('/')));
}

/** The words of the rules that leave groups out. */
function ownerGroupRules(
  { ownerGroups: { captured, groups } }: Interception,
  match: readonly string[] = [],
): string[][] {
  if (captured === 'all-but') return groups.map((group) => [...match, ...owner('gid', group), ...jump('RETURN')]);
  return [[...match, ...groups.flatMap((group) => notOwner('gid', group)), ...jump('RETURN')]];
}

/** For each name server that is captured, how its packets are known. */
function dnsTargets(wanted: Interception, family: IpFamily, direction: '-d' | '-s' = '-d'): string[][] {
  if (!wanted.redirectDns) return [];
  if (wanted.captureAllDns) return [[]];
  return wanted.dnsServers[family].map((server) => [direction, `${server}/${addresses[family].hostBits}`]);
}

/** iptables takes both spellings; the reference has one for each protocol. */
function redirectTo(protocol: 'tcp' | 'udp'): string[] {
  return [...jump('REDIRECT'), protocol === 'tcp' ? '--to-ports' : '--to-port', `${dnsCapturePort}`];
}

function outboundRanges({ outboundRanges: ranges, kubevirtInterfaces }: Interception, family: IpFamily): Rule[] {
  const fromVirtualMachines = (...range: string[]): Rule[] =>
    kubevirtInterfaces.map((nic) => inserted(1, nat('PREROUTING', '-i', nic, ...range, ...jump(redirect))));
  const wanted = ranges[family];
  if (wanted === '*') return [nat(output, ...jump(redirect)), ...fromVirtualMachines()];
  if (wanted.length === 0) return [];
  return [
    ...wanted.flatMap((range) => [...fromVirtualMachines(...to(range)), nat(output, ...to(range), ...jump(redirect))]),
    nat(output, ...jump('RETURN')),
  ];
}

/**
 * The agent's own questions leave as they are. Questions and answers of the two sides have the same addresses and ports:
 * without zones connection tracking would take them for one conversation, and answers would be lost.
 */
function dnsOverUdp(wanted: Interception, family: IpFamily): Rule[] {
  const question = [...udp, ...dport(53)];
  const own = owners(wanted);
  const [targets, sources] = [dnsTargets(wanted, family), dnsTargets(wanted, family, '-s')];
  return [
    ...own.map(({ kind, id }) => nat('OUTPUT', ...question, ...owner(kind, id), ...jump('RETURN'))),
    ...ownerGroupRules(wanted, question).map((words) => nat('OUTPUT', ...words)),
    ...targets.map((target) => nat('OUTPUT', ...question, ...target, ...redirectTo('udp'))),
    ...own.flatMap(({ kind, id }) => [
      raw('OUTPUT', ...question, ...owner(kind, id), ...connectionZone(1)),
      raw('OUTPUT', ...udp, ...sport(dnsCapturePort), ...owner(kind, id), ...connectionZone(2)),
    ]),
    ...targets.flatMap((target, i) => [
      raw('OUTPUT', ...question, ...target, ...connectionZone(2)),
      raw('PREROUTING', ...udp, ...sport(53), ...sources[i]!, ...connectionZone(1)),
    ]),
  ];
}

function tproxyMarks(wanted: Interception, family: IpFamily): Rule[] {
  const { tproxyMark: mark } = wanted;
  const { localhost, passthrough } = addresses[family];
  const fromLoopback = ['-i', 'lo'];
  return [
    // What Envoy marked when it connected with the client's address: answers find the way back to it.
    mangle('PREROUTING', ...tcp, ...marked(mark), ...jump('CONNMARK'), '--save-mark'),
    mangle('OUTPUT', ...tcp, ...viaLoopback, ...marked(mark), ...jump('RETURN')),
    ...owners(wanted).map(({ kind, id }) =>
      mangle(
        'OUTPUT',
        ...[...notTo(localhost), ...tcp, ...viaLoopback, ...owner(kind, id)],
        ...[...jump('MARK'), '--set-mark', `${outboundMark}`],
      ),
    ),
    mangle('OUTPUT', ...tcp, '-m', 'connmark', '--mark', `${mark}`, ...jump('CONNMARK'), '--restore-mark'),
    inserted(1, mangle(inbound, ...tcp, ...marked(mark), ...jump('RETURN'))),
    inserted(2, mangle(inbound, ...tcp, '-s', passthrough, ...fromLoopback, ...jump('RETURN'))),
    inserted(
      3,
      mangle(inbound, ...tcp, ...fromLoopback, '-m', 'mark', '!', '--mark', `${outboundMark}`, ...jump('RETURN')),
    ),
  ];
}

/** Who listens to netfilter's log group is told of each packet that a rule matches, under the rule's chain and target. */
function traced(rule: Rule): Rule[] {
  const at = rule.words.indexOf('-j');
  // Positions are those of rules among themselves: what is inserted is not reported.
  if (rule.position !== undefined) return [rule];
  const target = ['NFLOG', '--nflog-prefix', `${rule.chain}>${rule.words[at + 1]}`];
  const words = [...rule.words.slice(0, at), ...jump(target[0]!), ...target.slice(1), '--nflog-group', '1337'];
  return [{ ...rule, words: [...words, '--nflog-size', '20'] }, rule];
}
