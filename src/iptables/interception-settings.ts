import { isIPv4, isIPv6 } from 'node:net';
import { durationMsOf } from '../model/fields/duration.ts';
import { booleanOf } from '../model/fields/go-boolean.ts';
import { isCidr } from '../model/fields/names.ts';
import {
  disallowedValue,
  type FieldViolation,
  mustBe,
  outOfRange,
  tooLarge,
  unknownValue,
  unsupportedFeature,
} from '../model/fields/violation.ts';
import { isLinkLocal } from '../runtime/addresses/link-local.ts';
import { parseResolvConf } from '../runtime/files/resolv-conf.ts';
import { OptionErrors } from '../runtime/option-errors.ts';
import { type FlagName, flagSyntax, type GivenFlags, interceptionFlags } from './flags.ts';
import type { AllOr, Interception, InterceptionMode, IpFamily, OwnerGroups, RuleGeneration } from './interception.ts';

/** State of the host that is read only if needed. */
export interface InterceptionHost {
  /** Returns non-loopback addresses in the kernel's order; `undefined` if unavailable. The default network namespace is that of the process. */
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
  /** Replaces existing rules of other flags, which are otherwise an error. */
  readonly reconcile: boolean;
  readonly forceApply: boolean;
  readonly runValidation: boolean;
  readonly probePort: number;
  readonly probeTimeoutMs: number;
  readonly outputPath: string | undefined;
  /** A file such as `/proc/1/ns/net` or `/var/run/netns/name`. */
  readonly networkNamespace: string | undefined;
  readonly warnings: readonly string[];
}

/** Istio's limit of included groups, which must all be in one rule. */
const maxOwnerGroups = 64;

/** @throws ChartpilotError FLAG_INVALID with all invalid flags and variables; errors of reading the host */
export function resolveInterception(
  flags: GivenFlags,
  env: NodeJS.ProcessEnv,
  host: InterceptionHost,
): InterceptionOrder {
  const values = new GivenValues(flags, env);
  const { errors, warnings } = values;
  const captureAllDns = values.switch('captureAllDns');
  const dnsServers =
    values.switch('redirectDns') && !captureAllDns
      ? nameServers(values.text('resolvConf'), host, warnings)
      : { v4: [], v6: [] };
  const networkNamespace = values.text('networkNamespace') || undefined;
  const proxyUids = values.owners('proxyUid') ?? [defaultUid(env, host)];
  const interception: Interception = {
    generation: values.generation(),
    proxyPort: values.port('envoyPort'),
    inboundCapturePort: values.port('inboundCapturePort'),
    inboundTunnelPort: values.port('inboundTunnelPort'),
    proxyUids,
    proxyGids: values.owners('proxyGid') ?? proxyUids,
    mode: (values.text('mode') === '' ? 'REDIRECT' : values.word('mode', ['REDIRECT', 'TPROXY'])) as InterceptionMode,
    inboundPorts: values.text('inboundPorts') === '*' ? '*' : values.ports('inboundPorts'),
    inboundPortsExclude: values.ports('inboundPortsExclude'),
    excludeInterfaces: values.interfaces('excludeInterfaces'),
    kubevirtInterfaces: values.interfaces('kubevirtInterfaces'),
    outboundRanges: values.ranges('outboundRanges'),
    outboundRangesExclude: values.rangesExclude('outboundRangesExclude'),
    outboundPorts: values.ports('outboundPorts'),
    outboundPortsExclude: values.ports('outboundPortsExclude'),
    ownerGroups: values.ownerGroups(env),
    loopbackRange: values.loopbackRange(env),
    tproxyMark: values.number('tproxyMark', { min: 1, max: 0xffff_ffff, not: 1338 }),
    tproxyRouteTable: values.number('tproxyRouteTable', { min: 1, max: 0xffff_ffff }),
    dropInvalid: values.switch('dropInvalid'),
    redirectDns: values.switch('redirectDns') && (captureAllDns || dnsServers.v4.length + dnsServers.v6.length > 0),
    captureAllDns,
    dnsServers,
    traceLogging: values.switch('traceLogging'),
    ipv6: usesIpv6(values, networkNamespace, host),
  };
  const order: InterceptionOrder = {
    interception,
    dryRun: values.switch('dryRun'),
    restoreFormat: values.switch('restoreFormat'),
    nativeNftables: values.switch('nativeNftables'),
    skipRuleApply: values.switch('skipRuleApply'),
    cleanupOnly: values.switch('cleanupOnly'),
    reconcile: values.switch('reconcile'),
    forceApply: values.switch('forceApply'),
    runValidation: values.switch('runValidation'),
    probePort: values.port('probePort'),
    probeTimeoutMs: values.durationMs('probeTimeout'),
    outputPath: values.text('outputPaths') || undefined,
    networkNamespace,
    warnings,
  };
  if (values.switch('cniMode') && order.networkNamespace === undefined) {
    errors.addFlagError('--cni-mode', disallowedValue('requires --network-namespace'));
  }
  if (values.switch('hostNsenterExec')) {
    errors.addFlagError(
      '--host-nsenter-exec',
      unsupportedFeature('is not supported: only the programs of this container are used'),
    );
  }
  errors.throwIfAny();
  return order;
}

function usesIpv6(values: GivenValues, networkNamespace: string | undefined, { addresses }: InterceptionHost): boolean {
  if (values.text('forceIpv6') !== '') return values.switch('forceIpv6');
  if (values.switch('dualStack')) return true;
  // An IPv6-only pod may have an IPv4 link-local address, through which it reaches hosts outside the cluster.
  const [firstAddress = ''] = (addresses(networkNamespace) ?? []).filter((address) => !isLinkLocal(address));
  // If the addresses of the given network namespace are unknown, its IPv6 traffic must not bypass the proxy.
  return networkNamespace === undefined ? isIPv6(firstAddress) : !isIPv4(firstAddress);
}

/** Empty variables are ignored. */
class GivenValues {
  readonly errors = new OptionErrors();
  readonly warnings: string[] = [];
  readonly #flags: GivenFlags;
  readonly #env: NodeJS.ProcessEnv;

  constructor(flags: GivenFlags, env: NodeJS.ProcessEnv) {
    this.#flags = flags;
    this.#env = env;
  }

  text(name: FlagName): string {
    const { variable, byDefault } = interceptionFlags[name];
    const flagValue = this.#flags[name];
    return flagValue === undefined ? this.#env[variable] || byDefault : `${flagValue}`.trim();
  }

  switch(name: FlagName): boolean {
    const value = booleanOf(this.text(name));
    if (value === undefined) this.#addError(name, unknownValue(['true', 'false'], this.text(name)));
    return value === true;
  }

  word(name: FlagName, allowedWords: readonly string[]): string {
    const value = this.text(name);
    if (!allowedWords.includes(value)) this.#addError(name, unknownValue(allowedWords, value));
    return value;
  }

  /** Native nftables supports only rules of G4. */
  generation(): RuleGeneration {
    if (!this.switch('nativeNftables')) return this.word('generation', ['g3', 'g4']) as RuleGeneration;
    const isNamed = this.#flags.generation !== undefined || !!this.#env[interceptionFlags.generation.variable];
    if (isNamed && this.word('generation', ['g3', 'g4']) === 'g3') {
      this.#addError('generation', disallowedValue('must be g4 with --native-nftables', 'g3'));
    }
    return 'g4';
  }

  /** Istio has no flag for the loopback range. */
  loopbackRange(env: NodeJS.ProcessEnv): string {
    const range = env.ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR?.trim() || '127.0.0.1/32';
    if (!isCidr(range) || !isIPv4(addressOf(range))) {
      this.errors.addFlagError(
        'ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR',
        mustBe('an IPv4 range such as 127.0.0.1/32', range),
      );
    }
    return range;
  }

  port(name: FlagName): number {
    return this.number(name, { min: 1, max: 65535 });
  }

  number(name: FlagName, { min, max, not: excludedValue }: { min: number; max: number; not?: number }): number {
    const text = this.text(name);
    const value = Number(text);
    if (!/^(\d{1,10}|0x[\da-fA-F]{1,8})$/.test(text) || value < min || value > max) {
      this.#addError(name, outOfRange(`an integer from ${min} to ${max}`, text));
    } else if (value === excludedValue) {
      this.#addError(name, disallowedValue('must not be the mark of connections from Envoy to itself', value));
    }
    return value;
  }

  durationMs(name: FlagName): number {
    const ms = durationMsOf(this.text(name));
    if (ms === undefined || ms <= 0) this.#addError(name, mustBe('a duration such as 5s', this.text(name)));
    return ms ?? 0;
  }

  /** The injector writes port 0 for a disabled port. */
  ports(name: FlagName): number[] {
    return this.#list(name, (item) => /^\d{1,5}$/.test(item) && Number(item) <= 65535, 'a port').map(Number);
  }

  /** The kernel limits names to 15 characters; `eth+` matches every name with this prefix. */
  interfaces(name: FlagName): string[] {
    return this.#list(
      name,
      (item) => /^[\w@][\w.:@-]{0,14}\+?$/.test(item) && item.length <= 15,
      'a network interface',
    );
  }

  owners(name: FlagName): string[] | undefined {
    const owners = this.#list(name, isOwnerName, 'an ID or name');
    return owners.length === 0 ? undefined : owners;
  }

  ranges(name: FlagName): Interception['outboundRanges'] {
    if (this.text(name) === '*') return { v4: '*', v6: '*' } satisfies Record<IpFamily, AllOr<string>>;
    return this.#rangesByFamily(name);
  }

  rangesExclude(name: FlagName): Interception['outboundRangesExclude'] {
    if (this.text(name) !== '*') return this.#rangesByFamily(name);
    this.#addError(name, mustBe('a list of ranges such as 10.0.0.0/8', this.text(name)));
    return { v4: [], v6: [] };
  }

  ownerGroups(env: NodeJS.ProcessEnv): OwnerGroups {
    const include = env.ISTIO_OUTBOUND_OWNER_GROUPS?.trim() || '*';
    const [variable, captureMode] =
      include === '*'
        ? (['ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE', 'all-but'] as const)
        : (['ISTIO_OUTBOUND_OWNER_GROUPS', 'only'] as const);
    const groups = listItems(env[variable] ?? '');
    for (const group of groups.filter((item) => !isOwnerName(item))) {
      this.errors.addFlagError(variable, mustBe('a list of group IDs or names', group));
    }
    if (captureMode === 'only' && groups.length > maxOwnerGroups) {
      this.errors.addFlagError(variable, tooLarge(maxOwnerGroups, groups.length, 'groups'));
    }
    // A list of only commas includes no group, so no traffic would be captured.
    if (captureMode === 'only' && groups.length === 0) {
      this.errors.addFlagError(variable, mustBe('* or a list of groups', include));
    }
    return { captured: captureMode, groups };
  }

  /** Skips invalid ranges with a warning, as Istio does. */
  #rangesByFamily(name: FlagName): Record<IpFamily, string[]> {
    const validItems = listItems(this.text(name)).filter((item) => {
      // Node accepts a zone, but iptables does not.
      const isReadable = isCidr(item) && !item.includes('%');
      if (!isReadable) {
        this.warnings.push(
          `${this.#sourceOf(name)}: ${mustBe('a range such as 10.0.0.0/8', item).message}; ignoring it`,
        );
      }
      return isReadable;
    });
    return {
      v4: validItems.filter((range) => isIPv4(addressOf(range))),
      v6: validItems.filter((range) => isIPv6(addressOf(range))),
    };
  }

  #list(name: FlagName, isValidItem: (item: string) => boolean, expected: string): string[] {
    const entries = listItems(this.text(name));
    for (const item of entries.filter((invalidItem) => !isValidItem(invalidItem))) {
      this.#addError(name, mustBe(expected, item));
    }
    return entries;
  }

  #addError(name: FlagName, violation: FieldViolation): void {
    this.errors.addFlagError(this.#sourceOf(name), violation);
  }

  #sourceOf(name: FlagName): string {
    const { variable } = interceptionFlags[name];
    return this.#flags[name] === undefined && this.#env[variable] ? variable : flagSyntax(name);
  }
}

function addressOf(range: string): string {
  return range.slice(0, range.indexOf('/'));
}

function listItems(list: string): string[] {
  return list
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** iptables resolves names of users and groups. */
function isOwnerName(text: string): boolean {
  return /^\d+$/.test(text) ? Number(text) < 0xffff_ffff : /^[A-Za-z_][\w.-]{0,31}$/.test(text);
}

function defaultUid(env: NodeJS.ProcessEnv, { readFile }: InterceptionHost): string {
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

/** A zone (`fe80::1%eth0`) selects an interface and is not part of the address. */
export function nameServers(
  path: string,
  { readFile }: Pick<InterceptionHost, 'readFile'>,
  warnings: string[],
): Record<IpFamily, string[]> {
  const servers = parseResolvConf(readFile(path)).servers.map((server) => server.replace(/%.*$/, ''));
  const v4 = [...new Set(servers.filter((server) => isIPv4(server)))];
  const v6 = [...new Set(servers.filter((server) => isIPv6(server)))];
  if (v4.length + v6.length === 0) warnings.push(`${path}: no name servers found, DNS is not redirected`);
  return { v4, v6 };
}
