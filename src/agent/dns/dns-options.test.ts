import { expect, test } from 'vitest';
import { detailsOf } from '../../../test/fixtures/error-details.ts';
import type { ErrorFields } from '../../runtime/errors.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import { OptionErrors } from '../../runtime/option-errors.ts';
import { type DnsOptions, type DnsSources, dnsOptions } from './dns-options.ts';

const v4 = 'search ns1.svc.cluster.local svc.cluster.local\nnameserver 10.96.0.10\nnameserver 8.8.8.8\n';

interface ResolvedDnsOptions {
  readonly options: DnsOptions | undefined;
  readonly warnings: readonly LogWarning[];
  /** Errors of invalid options. */
  readonly errors: readonly ErrorFields[];
}

function resolve(
  env: NodeJS.ProcessEnv,
  files: Record<string, string> = { '/etc/resolv.conf': v4 },
  overrides: Partial<DnsSources> = {},
): ResolvedDnsOptions {
  const errors = new OptionErrors();
  const warnings: LogWarning[] = [];
  const readFile = (path: string): string => {
    const text = new Map(Object.entries(files)).get(path);
    if (text === undefined) throw new Error(`ENOENT: ${path}`);
    return text;
  };
  const capture = { ISTIO_META_DNS_CAPTURE: 'true', POD_NAMESPACE: 'ns1', ...env };
  const options = dnsOptions({
    role: 'sidecar',
    env: capture,
    domain: 'ns1.svc.cluster.local',
    uid: 0,
    readFile,
    ownAddresses: () => ['127.0.0.1', '10.0.0.5', 'fd00::5', 'fe80::5'],
    errors,
    warnings,
    ...overrides,
  });
  return { options, warnings, errors: detailsOf(() => errors.throwIfAny()) };
}

test('starts a DNS server only for a sidecar with DNS capture (agent §9)', () => {
  expect(resolve({ ISTIO_META_DNS_CAPTURE: '' }).options).toBeUndefined();
  expect(resolve({ ISTIO_META_DNS_CAPTURE: 'false' }).options).toBeUndefined();
  expect(resolve({}, undefined, { role: 'router' }).options).toBeUndefined();
  expect(resolve({ ISTIO_META_DNS_CAPTURE: '1' })).toEqual({
    options: {
      addresses: ['127.0.0.1'],
      port: 15053,
      servers: ['10.96.0.10', '8.8.8.8'],
      timeoutMs: 5_000,
      parallel: false,
      forwardBeforeTable: false,
      workload: { namespace: 'ns1', domain: 'ns1.svc.cluster.local', search: 'ns1.svc.cluster.local' },
    },
    warnings: [],
    errors: [],
  });
});

test('resolves localhost for the address families of resolv.conf, and an IP address to itself (agent §9)', () => {
  const addresses = (env: NodeJS.ProcessEnv, resolvConf: string): unknown =>
    resolve(env, { '/etc/resolv.conf': resolvConf }).options?.addresses;
  expect(addresses({}, 'nameserver fd00::10')).toEqual(['::1']);
  expect(addresses({}, 'nameserver fd00::10\nnameserver 1.1.1.1')).toEqual(['127.0.0.1', '::1']);
  expect(addresses({}, '')).toEqual(['127.0.0.1']);
  expect(addresses({ DNS_PROXY_ADDR: '127.0.0.5:5353' }, v4)).toEqual(['127.0.0.5']);
  expect(addresses({ DNS_PROXY_ADDR: '[::1]:5353' }, v4)).toEqual(['::1']);
  expect(addresses({ DNS_PROXY_ADDR: ':5353' }, v4)).toEqual(['0.0.0.0', '::']);
});

test("requires root for port 53, uses the host's resolv.conf, and forwards queries before the first table (agent §9)", () => {
  const files = { '/etc/resolv.conf': 'nameserver 127.0.0.1', '/var/lib/istio/resolv.conf': v4 };
  const root = resolve({ DNS_PROXY_ADDR: 'localhost:53' }, files);
  expect(root.options).toMatchObject({ port: 53, servers: ['10.96.0.10', '8.8.8.8'], forwardBeforeTable: true });
  const other = resolve({ DNS_PROXY_ADDR: ':53' }, files, { uid: 1337 });
  expect(other.options).toMatchObject({ port: 15053, addresses: ['127.0.0.1'], forwardBeforeTable: false });
  expect(other.warnings).toEqual([
    {
      ...{ event: 'option.nonrootDnsPort', setting: 'DNS_PROXY_ADDR', value: ':53', uid: 1337 },
      default: 'localhost:15053',
    },
  ]);
});

test('does not forward queries of a server on port 53 to itself if resolv.conf contains its address (agent §9)', () => {
  const files = { '/etc/resolv.conf': 'nameserver 127.0.0.1\nnameserver 8.8.8.8\nnameserver 127.0.0.53\n' };
  const at = (address: string): ResolvedDnsOptions => resolve({ DNS_PROXY_ADDR: address }, files);
  expect(at('localhost:53').options?.servers).toEqual(['8.8.8.8', '127.0.0.53']);
  expect(at('localhost:53').warnings).toEqual([
    { event: 'option.dnsUpstreamIsSelf', servers: '127.0.0.1', file: '/var/lib/istio/resolv.conf' },
  ]);
  expect(at(':53').options?.servers).toEqual(['8.8.8.8']);
  expect(at('localhost:15053')).toMatchObject({
    options: { servers: ['127.0.0.1', '8.8.8.8', '127.0.0.53'] },
    warnings: [],
  });
});

test('does not forward queries to an address of this host in any notation (agent §9)', () => {
  const files = {
    '/etc/resolv.conf': 'nameserver 10.0.0.5\nnameserver FD00:0::5\nnameserver fe80::5%eth0\nnameserver 10.0.0.6\n',
  };
  const at = (address: string) => resolve({ DNS_PROXY_ADDR: address }, files).options?.servers;
  expect(at(':53')).toEqual(['10.0.0.6']);
  expect(at('0.0.0.0:53')).toEqual(['10.0.0.6']);
  expect(at('10.0.0.5:53')).toEqual(['FD00:0::5', 'fe80::5%eth0', '10.0.0.6']);
  expect(at('[fd00::5]:53')).toEqual(['10.0.0.5', 'fe80::5%eth0', '10.0.0.6']);
  expect(at('localhost:53')).toEqual(['10.0.0.5', 'FD00:0::5', 'fe80::5%eth0', '10.0.0.6']);
});

test('reports invalid values, and forwards no queries if there is no resolv.conf (agent §9)', () => {
  expect(resolve({ DNS_PROXY_ADDR: 'somewhere' }).errors).toMatchObject([
    { path: 'DNS_PROXY_ADDR', got: '"somewhere"' },
  ]);
  expect(resolve({ DNS_PROXY_ADDR: 'host:53' }).errors).toMatchObject([{ path: 'DNS_PROXY_ADDR', got: '"host:53"' }]);
  expect(resolve({ DNS_PROXY_ADDR: '127.0.0.1:0' }).errors).toMatchObject([
    { path: 'DNS_PROXY_ADDR', got: '"127.0.0.1:0"' },
  ]);
  expect(resolve({ DNS_FORWARD_TIMEOUT: 'soon' }).errors).toMatchObject([
    { path: 'DNS_FORWARD_TIMEOUT', got: '"soon"' },
  ]);
  expect(resolve({ DNS_FORWARD_TIMEOUT: '0s' }).errors).toMatchObject([{ path: 'DNS_FORWARD_TIMEOUT', got: '"0s"' }]);
  expect(resolve({ DNS_FORWARD_PARALLEL: 'all' }).errors).toMatchObject([
    { path: 'DNS_FORWARD_PARALLEL', got: '"all"' },
  ]);
  const withoutFile = resolve({}, {});
  expect(withoutFile.options?.servers).toEqual([]);
  expect(withoutFile.warnings).toEqual([{ event: 'option.dnsWithoutUpstream', reason: 'ENOENT: /etc/resolv.conf' }]);
});
