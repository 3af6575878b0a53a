/** Options of `istio-iptables`, validated so that each value is exactly one word of a rule. */
import { isIPv4, isIPv6 } from 'node:net';
import { durationMsOf } from '../model/fields/duration.ts';
import { booleanOf } from '../model/fields/go-boolean.ts';
import { isCidr } from '../model/fields/names.ts';
import {
  type FieldViolation,
  mustBe,
  notAllowed,
  outOfRange,
  tooLarge,
  unknownValue,
  unsupported,
} from '../model/fields/violation.ts';
import { isLinkLocal } from '../runtime/addresses/link-local.ts';
import { parseResolvConf } from '../runtime/files/resolv-conf.ts';
import { OptionErrors } from '../runtime/option-errors.ts';
import { type FlagName, interceptionFlags, type SaidFlags, spelled } from './flags.ts';
import type { AllOr, Generation, Interception, InterceptionMode, IpFamily, OwnerGroups } from './interception.ts';

/** State of this host that the rules depend on, read only if needed. */
export interface Surroundings {
  /** Addresses except loopback in the kernel's order, of the given network namespace, else of the process's namespace; `undefined` if unavailable. */
  readonly addresses: (networkNamespace: string | undefined) => readonly string[] | undefined;
  readonly readFile: (path: string) => string;
}

export interface InterceptionOrder {
  readonly interception: Interception;
  readonly dryRun: boolean;
  readonly restoreFormat: boolean;
  readonly nativeNftables: boolean;
  readonly skipRuleApply: boolean;
  readonly cleanupOnly: boolean;
  /** Replaces rules of other flags, which are otherwise an error. */
  readonly reconcile: boolean;
  readonly forceApply: boolean;
  readonly runValidation: boolean;
  readonly probePort: number;
  readonly probeTimeoutMs: number;
  readonly outputPath: string | undefined;
  /** A file such as `/proc/1/ns/net`, or `/var/run/netns/name`. */
  readonly networkNamespace: string | undefined;
  readonly warnings: readonly string[];
}

/** Istio's limit of included groups, because one rule must contain all. */
const mostOwnerGroups = 64;

/** @throws ChartpilotError FLAG_INVALID with all invalid flags and variables; errors of reading the host */
export function resolveInterception(
  flags: SaidFlags,
  env: NodeJS.ProcessEnv,
  surroundings: Surroundings,
): InterceptionOrder {
  const said = new SaidValues(flags, env);
  const { errors, warnings } = said;
  const captureAllDns = said.switch('captureAllDns');
  const dnsServers =
    said.switch('redirectDns') && !captureAllDns
      ? nameServers(said.text('resolvConf'), surroundings, warnings)
      : { v4: [], v6: [] };
  const networkNamespace = said.text('networkNamespace') || undefined;
  const proxyUids = said.owners('proxyUid') ?? [defaultUid(env, surroundings)];
  const interception: Interception = {
    generation: said.generation(),
    proxyPort: said.port('envoyPort'),
    inboundCapturePort: said.port('inboundCapturePort'),
    inboundTunnelPort: said.port('inboundTunnelPort'),
    proxyUids,
    proxyGids: said.owners('proxyGid') ?? proxyUids,
    mode: (said.text('mode') === '' ? 'REDIRECT' : said.word('mode', ['REDIRECT', 'TPROXY'])) as InterceptionMode,
    inboundPorts: said.text('inboundPorts') === '*' ? '*' : said.ports('inboundPorts'),
    inboundPortsExclude: said.ports('inboundPortsExclude'),
    excludeInterfaces: said.interfaces('excludeInterfaces'),
    kubevirtInterfaces: said.interfaces('kubevirtInterfaces'),
    outboundRanges: said.ranges('outboundRanges'),
    outboundRangesExclude: said.rangesExclude('outboundRangesExclude'),
    outboundPorts: said.ports('outboundPorts'),
    outboundPortsExclude: said.ports('outboundPortsExclude'),
    ownerGroups: said.ownerGroups(env),
    loopbackRange: said.loopbackRange(env),
    tproxyMark: said.number('tproxyMark', { least: 1, most: 0xffff_ffff, not: 1338 }),
    tproxyRouteTable: said.number('tproxyRouteTable', { least: 1, most: 0xffff_ffff }),
    dropInvalid: said.switch('dropInvalid'),
    redirectDns: said.switch('redirectDns') && (captureAllDns || dnsServers.v4.length + dnsServers.v6.length > 0),
    captureAllDns,
    dnsServers,
    traceLogging: said.switch('traceLogging'),
    ipv6: wantsIpv6(said, networkNamespace, surroundings),
  };
  const order: InterceptionOrder = {
    interception,
    dryRun: said.switch('dryRun'),
    restoreFormat: said.switch('restoreFormat'),
    nativeNftables: said.switch('nativeNftables'),
    skipRuleApply: said.switch('skipRuleApply'),
    cleanupOnly: said.switch('cleanupOnly'),
    reconcile: said.switch('reconcile'),
    forceApply: said.switch('forceApply'),
    runValidation: said.switch('runValidation'),
    probePort: said.port('probePort'),
    probeTimeoutMs: said.durationMs('probeTimeout'),
    outputPath: said.text('outputPaths') || undefined,
    networkNamespace,
    warnings,
  };
  if (said.switch('cniMode') && order.networkNamespace === undefined) {
    errors.flag('--cni-mode', notAllowed('requires --network-namespace'));
  }
  if (said.switch('hostNsenterExec')) {
    errors.flag('--host-nsenter-exec', unsupported('is not supported: only the programs of this container are used'));
  }
  errors.throwIfAny();
  return order;
}

function wantsIpv6(said: SaidValues, networkNamespace: string | undefined, { addresses }: Surroundings): boolean {
  if (said.text('forceIpv6') !== '') return said.switch('forceIpv6');
  if (said.switch('dualStack')) return true;
  // An IPv6-only pod may have an IPv4 link-local address, by which it leaves the cluster.
  const [first = ''] = (addresses(networkNamespace) ?? []).filter((address) => !isLinkLocal(address));
  // If the other network is unknown, its IPv6 traffic must not bypass the proxy.
  return networkNamespace === undefined ? isIPv6(first) : !isIPv4(first);
}

/** Values from flags, then variables, then defaults; an empty variable is ignored. */
class SaidValues {
  readonly errors = new OptionErrors();
  readonly warnings: string[] = [];
  readonly #flags: SaidFlags;
  readonly #env: NodeJS.ProcessEnv;

  constructor(flags: SaidFlags, env: NodeJS.ProcessEnv) {
    this.#flags = flags;
    this.#env = env;
  }

  text(name: FlagName): string {
    const { variable, byDefault } = interceptionFlags[name];
    const said = this.#flags[name];
    return said === undefined ? this.#env[variable] || byDefault : `${said}`.trim();
  }

  switch(name: FlagName): boolean {
    const value = booleanOf(this.text(name));
    if (value === undefined) this.#wrong(name, unknownValue(['true', 'false'], this.text(name)));
    return value === true;
  }

  word(name: FlagName, words: readonly string[]): string {
    const value = this.text(name);
    if (!words.includes(value)) this.#wrong(name, unknownValue(words, value));
    return value;
  }

  /** Native nftables supports only rules of G4, which is its default. */
  generation(): Generation {
    if (!this.switch('nativeNftables')) return this.word('generation', ['g3', 'g4']) as Generation;
    const isNamed = this.#flags.generation !== undefined || !!this.#env[interceptionFlags.generation.variable];
    if (isNamed && this.word('generation', ['g3', 'g4']) === 'g3') {
      this.#wrong('generation', notAllowed('must be g4 with --native-nftables', 'g3'));
    }
    return 'g4';
  }

  /** One IPv4 range, only from its variable: Istio has no flag for it. */
  loopbackRange(env: NodeJS.ProcessEnv): string {
    const range = env.ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR?.trim() || '127.0.0.1/32';
    if (!isCidr(range) || !isIPv4(addressOf(range))) {
      this.errors.flag('ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR', mustBe('an IPv4 range such as 127.0.0.1/32', range));
    }
    return range;
  }

  port(name: FlagName): number {
    return this.number(name, { least: 1, most: 65535 });
  }

  number(name: FlagName, { least, most, not }: { least: number; most: number; not?: number }): number {
    const text = this.text(name);
    const value = Number(text);
    if (!/^(\d{1,10}|0x[\da-fA-F]{1,8})$/.test(text) || value < least || value > most) {
      this.#wrong(name, outOfRange(`an integer from ${least} to ${most}`, text));
    } else if (value === not) {
      this.#wrong(name, notAllowed('must not be the mark of connections from Envoy to itself', value));
    }
    return value;
  }

  durationMs(name: FlagName): number {
    const ms = durationMsOf(this.text(name));
    if (ms === undefined || ms <= 0) this.#wrong(name, mustBe('a duration such as 5s', this.text(name)));
    return ms ?? 0;
  }

  /** Accepts port 0, which the injector writes for a disabled port. */
  ports(name: FlagName): number[] {
    return this.#list(name, (item) => /^\d{1,5}$/.test(item) && Number(item) <= 65535, 'a port').map(Number);
  }

  /** Kernel interface names have at most 15 characters; `eth+` matches every name with this prefix. */
  interfaces(name: FlagName): string[] {
    return this.#list(
      name,
      (item) => /^[\w@][\w.:@-]{0,14}\+?$/.test(item) && item.length <= 15,
      'a network interface',
    );
  }

  /** `undefined` if not set. */
  owners(name: FlagName): string[] | undefined {
    const owners = this.#list(name, isOwner, 'an ID or name');
    return owners.length === 0 ? undefined : owners;
  }

  ranges(name: FlagName): Interception['outboundRanges'] {
    if (this.text(name) === '*') return { v4: '*', v6: '*' } satisfies Record<IpFamily, AllOr<string>>;
    return this.#rangesByFamily(name);
  }

  rangesExclude(name: FlagName): Interception['outboundRangesExclude'] {
    if (this.text(name) !== '*') return this.#rangesByFamily(name);
    this.#wrong(name, mustBe('a list of ranges such as 10.0.0.0/8', this.text(name)));
    return { v4: [], v6: [] };
  }

  ownerGroups(env: NodeJS.ProcessEnv): OwnerGroups {
    const include = env.ISTIO_OUTBOUND_OWNER_GROUPS?.trim() || '*';
    const [variable, captured] =
      include === '*'
        ? (['ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE', 'all-but'] as const)
        : (['ISTIO_OUTBOUND_OWNER_GROUPS', 'only'] as const);
    const groups = items(env[variable] ?? '');
    for (const group of groups.filter((item) => !isOwner(item))) {
      this.errors.flag(variable, mustBe('a list of group IDs or names', group));
    }
    if (captured === 'only' && groups.length > mostOwnerGroups) {
      this.errors.flag(variable, tooLarge(mostOwnerGroups, groups.length, 'groups'));
    }
    // A list with only commas names no group, so no traffic would be captured.
    if (captured === 'only' && groups.length === 0) {
      this.errors.flag(variable, mustBe('* or a list of groups', include));
    }
    return { captured, groups };
  }

  /** Ignores invalid ranges with a warning, as Istio does. */
  #rangesByFamily(name: FlagName): Record<IpFamily, string[]> {
    const good = items(this.text(name)).filter((item) => {
      // Node accepts a zone, iptables does not.
      const readable = isCidr(item) && !item.includes('%');
      if (!readable) {
        this.warnings.push(`${this.#place(name)}: ${mustBe('a range such as 10.0.0.0/8', item).message}; ignoring it`);
      }
      return readable;
    });
    return {
      v4: good.filter((range) => isIPv4(addressOf(range))),
      v6: good.filter((range) => isIPv6(addressOf(range))),
    };
  }

  #list(name: FlagName, isGood: (item: string) => boolean, what: string): string[] {
    const all = items(this.text(name));
    for (const item of all.filter((one) => !isGood(one))) {
      this.#wrong(name, mustBe(what, item));
    }
    return all;
  }

  #wrong(name: FlagName, violation: FieldViolation): void {
    this.errors.flag(this.#place(name), violation);
  }

  #place(name: FlagName): string {
    const { variable } = interceptionFlags[name];
    return this.#flags[name] === undefined && this.#env[variable] ? variable : spelled(name);
  }
}

function addressOf(range: string): string {
  return range.slice(0, range.indexOf('/'));
}

/** Ignores empty items, which templates produce. */
function items(list: string): string[] {
  return list
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** A user or group by ID or name; iptables resolves names. */
function isOwner(text: string): boolean {
  return /^\d+$/.test(text) ? Number(text) < 0xffff_ffff : /^[A-Za-z_][\w.-]{0,31}$/.test(text);
}

function defaultUid(env: NodeJS.ProcessEnv, { readFile }: Surroundings): string {
  const name = env.ENVOY_USER || 'istio-proxy';
  try {
    const entry = readFile('/etc/passwd')
      .split('\n')
      .map((line) => line.split(':'))
      .find(([user]) => user === name);
    if (/^\d+$/.test(entry?.[2] ?? '')) return entry![2]!;
  } catch {
    // The container has no user database.
  }
  return '1337';
}

/** By family, without duplicates. A zone (`fe80::1%eth0`) selects an interface and is not part of the address. */
export function nameServers(
  path: string,
  { readFile }: Pick<Surroundings, 'readFile'>,
  warnings: string[],
): Record<IpFamily, string[]> {
  const servers = parseResolvConf(readFile(path)).servers.map((server) => server.replace(/%.*$/, ''));
  const v4 = [...new Set(servers.filter((server) => isIPv4(server)))];
  const v6 = [...new Set(servers.filter((server) => isIPv6(server)))];
  if (v4.length + v6.length === 0) warnings.push(`${path}: no name servers found, DNS is not redirected`);
  return { v4, v6 };
}
