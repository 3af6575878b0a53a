import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { errorWith } from '../../test/fixtures/error-details.ts';
import { type FlagName, flagSyntax, type GivenFlags, interceptionFlags } from './flags.ts';
import { type InterceptionOrder, nameServers, resolveInterception } from './interception-settings.ts';
import { nftText } from './nftables.ts';
import { ruleWords } from './rule-list.ts';
import { interceptionRules } from './rules.ts';

const nftLine = /^(?:[\w\s.:/@+,>!=*{}-]|"[\w.:@*>-]+"|policy accept;|priority -\d+;)*$/;

interface HostFixture {
  readonly addresses?: readonly string[];
  readonly files?: Readonly<Record<string, string>>;
}

function resolve(
  flags: GivenFlags,
  env: NodeJS.ProcessEnv = {},
  { addresses = [], files = {} }: HostFixture = {},
): InterceptionOrder {
  return resolveInterception(flags, env, {
    addresses: () => addresses,
    readFile: (path) => {
      const text = new Map(Object.entries(files)).get(path);
      if (text === undefined) throw new Error(`no ${path}`);
      return text;
    },
  });
}

const all: GivenFlags = { redirectDns: true, captureAllDns: true };
const bothTrue = [true, true];

describe('a setting (§10.1)', () => {
  test('is read from the flag, or else the variable, or else the default, ignoring an empty variable', () => {
    const portOf = (flags: GivenFlags, env: NodeJS.ProcessEnv): number => resolve(flags, env).interception.proxyPort;
    expect(portOf({ envoyPort: '1' }, { ENVOY_PORT: '2' })).toBe(1);
    expect(portOf({}, { ENVOY_PORT: '2' })).toBe(2);
    expect(portOf({}, { ENVOY_PORT: '' })).toBe(15001);
  });

  test('has a variable named after its flag, with exceptions', () => {
    expect(interceptionFlags.inboundPortsExclude.variable).toBe('ISTIO_LOCAL_EXCLUDE_PORTS');
    expect(resolve({}, { ISTIO_META_DNS_CAPTURE: 'true', CAPTURE_ALL_DNS: '1' }).interception.redirectDns).toBe(true);
    expect(resolve({}, { INVALID_DROP: 'T' }).interception.dropInvalid).toBe(true);
  });

  test('is overridden by an empty flag, even if the variable is set', () => {
    expect(resolve({ inboundPorts: '' }, { ISTIO_INBOUND_PORTS: '*' }).interception.inboundPorts).toEqual([]);
  });

  test("defaults, for the proxy's user and group, to $ENVOY_USER, then istio-proxy, then 1337", () => {
    const files = {
      '/etc/passwd': 'root:x:0:0::/:/bin/sh\nistio-proxy:x:1400:1400::/:/bin/sh\nme:x:7:7::/:/bin/sh\nbad:x\n',
    };
    const ownersOf = (flags: GivenFlags, env: NodeJS.ProcessEnv, host: HostFixture): unknown => {
      const { proxyUids, proxyGids } = resolve(flags, env, host).interception;
      return [proxyUids, proxyGids];
    };
    expect(ownersOf({}, {}, {})).toEqual([['1337'], ['1337']]);
    expect(ownersOf({}, {}, { files })).toEqual([['1400'], ['1400']]);
    expect(ownersOf({}, { ENVOY_USER: 'me' }, { files })).toEqual([['7'], ['7']]);
    expect(ownersOf({}, { ENVOY_USER: 'bad' }, { files })).toEqual([['1337'], ['1337']]);
    expect(ownersOf({ proxyUid: '1,2', proxyGid: '3' }, {}, { files })).toEqual([['1', '2'], ['3']]);
  });

  test('enables IPv6 if the first address is IPv6, for both address families, or by flag', () => {
    const ipv6 = (flags: GivenFlags, addresses: readonly string[]): boolean =>
      resolve(flags, {}, { addresses }).interception.ipv6;
    expect(ipv6({}, ['10.0.0.1', 'fd00::1'])).toBe(false);
    expect(ipv6({}, ['fd00::1', '10.0.0.1'])).toBe(true);
    expect(ipv6({}, [])).toBe(false);
    expect(ipv6({}, ['169.254.172.2', 'fd00::1'])).toBe(true);
    expect(ipv6({}, ['fe80::1', '10.0.0.1', 'fd00::1'])).toBe(false);
    expect(ipv6({ dualStack: true }, ['10.0.0.1'])).toBe(true);
    expect(resolve({}, { ISTIO_DUAL_STACK: 'true' }, { addresses: ['10.0.0.1'] }).interception.ipv6).toBe(true);
    expect(ipv6({ forceIpv6: 'false' }, ['fd00::1'])).toBe(false);
    expect(ipv6({ forceIpv6: 'true' }, [])).toBe(true);
  });
});

test('another network namespace uses its own addresses, or both address families if these are unknown', () => {
  const ipv6 = (flags: GivenFlags, namespaceAddresses: readonly string[] | undefined): boolean =>
    resolveInterception(
      { networkNamespace: '/proc/7/ns/net', ...flags },
      {},
      {
        addresses: (networkNamespace) => (networkNamespace === '/proc/7/ns/net' ? namespaceAddresses : ['10.0.0.1']),
        readFile: () => '',
      },
    ).interception.ipv6;
  expect(ipv6({}, ['fd00::1'])).toBe(true);
  expect(ipv6({}, ['10.0.0.1', 'fd00::1'])).toBe(false);
  expect(ipv6({}, [])).toBe(true);
  expect(ipv6({}, undefined)).toBe(true);
  expect(ipv6({ forceIpv6: 'false' }, undefined)).toBe(false);
});

describe('interception flags', () => {
  test.each<[flag: string, said: GivenFlags, seen: (order: InterceptionOrder) => unknown, expected: unknown]>([
    ['--envoy-port', { envoyPort: '1' }, (o) => o.interception.proxyPort, 1],
    ['--inbound-capture-port', { inboundCapturePort: '1' }, (o) => o.interception.inboundCapturePort, 1],
    ['--inbound-tunnel-port', { inboundTunnelPort: '1' }, (o) => o.interception.inboundTunnelPort, 1],
    ['--proxy-uid', { proxyUid: '1,2' }, (o) => o.interception.proxyUids, ['1', '2']],
    ['--proxy-gid', { proxyGid: '3' }, (o) => o.interception.proxyGids, ['3']],
    ['--istio-inbound-interception-mode', { mode: 'TPROXY' }, (o) => o.interception.mode, 'TPROXY'],
    ['--istio-inbound-ports', { inboundPorts: '80,81' }, (o) => o.interception.inboundPorts, [80, 81]],
    ['--istio-local-exclude-ports', { inboundPortsExclude: '22' }, (o) => o.interception.inboundPortsExclude, [22]],
    ['--istio-exclude-interfaces', { excludeInterfaces: 'n' }, (o) => o.interception.excludeInterfaces, ['n']],
    ['--istio-service-cidr', { outboundRanges: '*' }, (o) => o.interception.outboundRanges, { v4: '*', v6: '*' }],
    [
      '--istio-service-exclude-cidr',
      { outboundRangesExclude: '10.0.0.0/8,fd00::/8' },
      (o) => o.interception.outboundRangesExclude,
      { v4: ['10.0.0.0/8'], v6: ['fd00::/8'] },
    ],
    ['--istio-outbound-ports', { outboundPorts: '9' }, (o) => o.interception.outboundPorts, [9]],
    [
      '--istio-local-outbound-ports-exclude',
      { outboundPortsExclude: '9' },
      (o) => o.interception.outboundPortsExclude,
      [9],
    ],
    ['--kube-virt-interfaces', { kubevirtInterfaces: 'k' }, (o) => o.interception.kubevirtInterfaces, ['k']],
    ['--istio-inbound-tproxy-mark', { tproxyMark: '7' }, (o) => o.interception.tproxyMark, 7],
    ['--istio-inbound-tproxy-route-table', { tproxyRouteTable: '7' }, (o) => o.interception.tproxyRouteTable, 7],
    ['--dry-run', { dryRun: true }, (o) => o.dryRun, true],
    ['--iptables-trace-logging', { traceLogging: true }, (o) => o.interception.traceLogging, true],
    ['--skip-rule-apply', { skipRuleApply: true }, (o) => o.skipRuleApply, true],
    ['--run-validation', { runValidation: true }, (o) => o.runValidation, true],
    ['--restore-format', { restoreFormat: 'false' }, (o) => o.restoreFormat, false],
    [
      '--redirect-dns, --capture-all-dns',
      all,
      (o) => [o.interception.redirectDns, o.interception.captureAllDns],
      bothTrue,
    ],
    ['--drop-invalid', { dropInvalid: true }, (o) => o.interception.dropInvalid, true],
    ['--iptables-probe-port', { probePort: '7' }, (o) => o.probePort, 7],
    ['--probe-timeout', { probeTimeout: '7s' }, (o) => o.probeTimeoutMs, 7_000],
    ['--output-paths', { outputPaths: '/o' }, (o) => o.outputPath, '/o'],
    ['--network-namespace, --cni-mode', { networkNamespace: '/n', cniMode: true }, (o) => o.networkNamespace, '/n'],
  ])('set a field of the interception (§10.1): %s', (_, flags, selectField, expected) => {
    expect(selectField(resolve(flags))).toEqual(expected);
    expect(selectField(resolve({}))).not.toEqual(expected);
  });

  test('must not include --host-nsenter-exec, or --cni-mode without a network (§10.1)', () => {
    expect(() => resolve({ hostNsenterExec: true })).toThrow(
      errorWith({ code: 'FIELD_UNSUPPORTED', path: '--host-nsenter-exec' }),
    );
    expect(() => resolve({ cniMode: true })).toThrow(errorWith({ code: 'FIELD_NOT_ALLOWED', path: '--cni-mode' }));
    expect(() => resolve({ cniMode: true })).toThrow('requires --network-namespace');
  });

  test('include groups by ISTIO_OUTBOUND_OWNER_GROUPS, and exclude groups by ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE (§10.1)', () => {
    const groupsOf = (env: NodeJS.ProcessEnv): unknown => resolve({}, env).interception.ownerGroups;
    expect(groupsOf({ ISTIO_OUTBOUND_OWNER_GROUPS: '1,2' })).toEqual({ captured: 'only', groups: ['1', '2'] });
    expect(groupsOf({ ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE: '3' })).toEqual({ captured: 'all-but', groups: ['3'] });
  });
});

describe('flag validation', () => {
  test.each<[FlagName, string]>([
    ['envoyPort', '0'],
    ['envoyPort', ''],
    ['envoyPort', '65536'],
    ['envoyPort', '1e3'],
    ['inboundCapturePort', '-1'],
    ['mode', 'NONE'],
    ['inboundPorts', '80,*'],
    ['inboundPorts', '80-90'],
    ['inboundPortsExclude', '80;reboot'],
    ['excludeInterfaces', 'eth0 -j ACCEPT'],
    ['excludeInterfaces', '-j'],
    ['excludeInterfaces', 'sixteencharacter'],
    ['kubevirtInterfaces', 'a\nb'],
    ['outboundRangesExclude', '*'],
    ['proxyUid', '1337 -j DROP'],
    ['proxyGid', '-1'],
    ['tproxyMark', '1338'],
    ['tproxyRouteTable', 'main'],
    ['redirectDns', 'yes'],
    ['generation', 'g5'],
    ['probeTimeout', 'soon'],
    ['forceIpv6', 'maybe'],
  ])('rejects flag %s with value %j', (name, value) => {
    const item = value.split(',').at(-1)!;
    const gotText = item === '1338' || item === '1337' ? String(item) : JSON.stringify(item);
    expect(() => resolve({ [name]: value })).toThrow(errorWith({ path: flagSyntax(name), got: gotText }));
    const { variable } = interceptionFlags[name];
    if (value !== '')
      expect(() => resolve({}, { [variable]: value })).toThrow(errorWith({ path: variable, got: gotText }));
  });

  test('reports all errors together', () => {
    expect(() => resolve({ envoyPort: 'x', mode: 'y', inboundPorts: 'z' })).toThrow(
      errorWith(
        { path: '--envoy-port', code: 'FIELD_OUT_OF_RANGE', got: '"x"' },
        { path: '--istio-inbound-interception-mode', code: 'FIELD_VALUE_UNKNOWN', got: '"y"' },
        { path: '--istio-inbound-ports', code: 'FIELD_FORMAT_INVALID', got: '"z"' },
      ),
    );
  });

  test('ignores an invalid range with a warning', () => {
    const { interception, warnings } = resolve({
      outboundRanges: '10.0.0.0/8,10.0.0.1,*,10.0.0.0/33,fe80::1%eth0/64,;ls,::/0',
    });
    expect(interception.outboundRanges).toEqual({ v4: ['10.0.0.0/8'], v6: ['::/0'] });
    expect(warnings).toHaveLength(5);
    expect(warnings[0]).toBe('--istio-service-cidr: must be a range such as 10.0.0.0/8, got "10.0.0.1"; ignoring it');
  });

  test('accepts at most 64 owner groups, and does not treat an empty list as all', () => {
    const groups = (count: number): string => Array.from({ length: count }, (_, i) => `${i}`).join(',');
    const env = (text: string): NodeJS.ProcessEnv => ({ ISTIO_OUTBOUND_OWNER_GROUPS: text });
    expect(resolve({}, env(groups(64))).interception.ownerGroups.groups).toHaveLength(64);
    expect(() => resolve({}, env(groups(65)))).toThrow(
      errorWith({ code: 'FIELD_TOO_LARGE', path: 'ISTIO_OUTBOUND_OWNER_GROUPS', got: '65' }),
    );
    expect(() => resolve({}, env(' , '))).toThrow(errorWith({ path: 'ISTIO_OUTBOUND_OWNER_GROUPS', got: '","' }));
    expect(() => resolve({}, env('a b'))).toThrow(errorWith({ path: 'ISTIO_OUTBOUND_OWNER_GROUPS', got: '"a b"' }));
    expect(resolve({}, env('')).interception.ownerGroups).toEqual({ captured: 'all-but', groups: [] });
  });

  test('rejects a missing required resolv.conf, and reports one without servers', () => {
    expect(() => resolve({ redirectDns: true })).toThrow('no /etc/resolv.conf');
    expect(resolve({ redirectDns: true, captureAllDns: true }).warnings).toEqual([]);
    const warnings: string[] = [];
    expect(nameServers('/f', { readFile: () => 'nameserver\nnameserver host\nnameserver 1.2.3\n' }, warnings)).toEqual({
      v4: [],
      v6: [],
    });
    expect(warnings).toEqual(['/f: no name servers found, DNS is not redirected']);
  });
});

test('accepted input is always exactly one word of a rule', () => {
  const nasty = fc.oneof(
    fc.string(),
    fc.constantFrom(
      '*',
      '',
      ',',
      '80',
      'eth0',
      '10.0.0.0/8',
      '::/0',
      '$(id)',
      '`id`',
      ';',
      '\n',
      '"',
      "'",
      '\\',
      '-j',
      '!',
    ),
  );
  const value = fc.array(nasty, { maxLength: 3 }).map((listParts) => listParts.join(','));
  const names = Object.keys(interceptionFlags) as FlagName[];
  let acceptedCount = 0;
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 3 }), value, (flags, groups) => {
      const files = { '/etc/resolv.conf': `nameserver ${groups}\nnameserver 10.0.0.1\n` };
      let order: InterceptionOrder;
      try {
        order = resolve(flags, { ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE: groups }, { files });
      } catch {
        return;
      }
      acceptedCount++;
      for (const rule of interceptionRules(order.interception)) {
        expect(rule.chain).toMatch(/^[A-Z_]+$/);
        for (const ruleWord of ruleWords(rule)) expect(ruleWord).toMatch(/^[\w.:/@+,>%!-]+$/);
      }
      // A quoted name must not end its quotes: each line of nft must be one rule with known words.
      for (const line of nftText(order.interception).split('\n')) expect(line).toMatch(nftLine);
    }),
    { numRuns: 3000 },
  );
  expect(acceptedCount).toBeGreaterThan(100);
});
