import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';
import { durationMsOf } from '../../model/fields/duration.ts';
import { booleanOf } from '../../model/fields/go-boolean.ts';
import { isSwitchOn } from '../../model/fields/switches.ts';
import { mustBe, unknownValue } from '../../model/fields/violation.ts';
import { isLoopback } from '../../runtime/addresses/loopback.ts';
import { isUnspecified } from '../../runtime/addresses/unspecified-address.ts';
import type { WorkloadNames } from '../../runtime/dns/dns-names.ts';
import { messageOf } from '../../runtime/errors.ts';
import { parseResolvConf, type ResolvConf } from '../../runtime/files/resolv-conf.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import type { OptionErrors } from '../../runtime/option-errors.ts';

export interface DnsOptions {
  readonly addresses: readonly string[];
  readonly port: number;
  readonly servers: readonly string[];
  readonly timeoutMs: number;
  readonly parallel: boolean;
  readonly forwardBeforeTable: boolean;
  readonly workload: WorkloadNames;
}

export interface DnsSources {
  readonly role: 'sidecar' | 'router';
  readonly env: NodeJS.ProcessEnv;
  readonly domain: string;
  readonly uid: number;
  readonly readFile: (path: string) => string;
  readonly ownAddresses: () => readonly string[];
  readonly errors: OptionErrors;
  readonly warnings: LogWarning[];
}

const defaultAddress = { host: 'localhost', port: 15053 };
/** This resolv.conf is from before the agent became the host's name server. */
const hostResolvConf = '/var/lib/istio/resolv.conf';

export function dnsOptions(sources: DnsSources): DnsOptions | undefined {
  const { role, env, domain, errors } = sources;
  if (role !== 'sidecar' || !isSwitchOn(env.ISTIO_META_DNS_CAPTURE)) return undefined;
  const { host, port } = listenAddress(sources);
  const isHostServer = port === 53;
  const { servers, search } = resolvConf(isHostServer, sources);
  const timeoutMs = durationMsOf(env.DNS_FORWARD_TIMEOUT || '5s') ?? 0;
  if (timeoutMs <= 0)
    errors.addFlagError('DNS_FORWARD_TIMEOUT', mustBe('a duration such as 5s', env.DNS_FORWARD_TIMEOUT));
  const parallel = booleanOf(env.DNS_FORWARD_PARALLEL || 'false');
  if (parallel === undefined) {
    errors.addFlagError('DNS_FORWARD_PARALLEL', unknownValue(['true', 'false'], env.DNS_FORWARD_PARALLEL));
  }
  const addresses = addressesOf(host, servers);
  return {
    addresses,
    port,
    servers: isHostServer ? omitItself(addresses, servers, sources) : servers,
    timeoutMs,
    parallel: parallel === true,
    forwardBeforeTable: isHostServer,
    workload: { namespace: env.POD_NAMESPACE || 'default', domain, search: search[0] ?? '' },
  };
}

function listenAddress({ env, uid, errors, warnings }: DnsSources): { host: string; port: number } {
  const text = env.DNS_PROXY_ADDR || `${defaultAddress.host}:${defaultAddress.port}`;
  const [, host = '', digits = ''] = /^(.*):(\d{1,5})$/.exec(text) ?? [];
  const [hostname, port] = [host.replace(/^\[(.*)\]$/, '$1'), Number(digits)];
  if (
    digits === '' ||
    port < 1 ||
    port > 65535 ||
    (hostname !== '' && hostname !== 'localhost' && isIP(hostname) === 0)
  ) {
    errors.addFlagError('DNS_PROXY_ADDR', mustBe('an IP address and port such as localhost:15053', text));
    return defaultAddress;
  }
  if (port === 53 && uid !== 0) {
    const { host: defaultHost, port: defaultPort } = defaultAddress;
    const fallback = `${defaultHost}:${defaultPort}`;
    warnings.push({ event: 'option.nonrootDnsPort', setting: 'DNS_PROXY_ADDR', value: text, uid, default: fallback });
    return defaultAddress;
  }
  return { host: hostname, port };
}

function addressesOf(host: string, servers: readonly string[]): string[] {
  if (host === '') return ['0.0.0.0', '::'];
  if (host !== 'localhost') return [host];
  const families = [
    ...(servers.some(isIPv4) ? ['127.0.0.1'] : []),
    ...(servers.some((server) => isIPv6(server)) ? ['::1'] : []),
  ];
  return families.length === 0 ? ['127.0.0.1'] : families;
}

/** This server must not forward to itself. */
function omitItself(
  addresses: readonly string[],
  servers: readonly string[],
  { ownAddresses, warnings }: DnsSources,
): string[] {
  // Compares numerically, because an IPv6 address has many notations.
  const ownAddressList = new BlockList();
  const boundAddresses = addresses.flatMap((address) => [address, ...(isUnspecified(address) ? ownAddresses() : [])]);
  for (const address of boundAddresses) ownAddressList.addAddress(stripZone(address), familyOf(address));
  const isOwnServer = (server: string): boolean =>
    ownAddressList.check(stripZone(server), familyOf(server)) || (isLoopback(server) && addresses.some(isUnspecified));
  const otherServers = servers.filter((server) => !isOwnServer(server));
  if (otherServers.length === servers.length) return otherServers;
  const ownServersText = servers.filter(isOwnServer).join(', ');
  warnings.push({ event: 'option.dnsUpstreamIsSelf', servers: ownServersText, file: hostResolvConf });
  return otherServers;
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv4(address) ? 'ipv4' : 'ipv6');
/** A link-local address may have a zone: `fe80::1%eth0`. */
const stripZone = (address: string): string => address.replace(/%.*$/, '');

/** Without a resolv.conf, the names of the mesh still resolve. */
function resolvConf(isHostServer: boolean, { readFile, warnings }: DnsSources): ResolvConf {
  const paths = isHostServer ? [hostResolvConf, '/etc/resolv.conf'] : ['/etc/resolv.conf'];
  let problem = '';
  for (const path of paths) {
    try {
      return parseResolvConf(readFile(path));
    } catch (error) {
      problem = messageOf(error);
    }
  }
  warnings.push({ event: 'option.dnsWithoutUpstream', reason: problem });
  return { servers: [], search: [] };
}
