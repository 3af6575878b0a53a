/** Compares rules with those of Istio. test/e2e/istio-iptables.test.ts tests their effect. */
import { expect, test } from 'vitest';
import { errorWith } from '../../test/fixtures/error-details.ts';
import { dryRunText } from './apply.ts';
import type { GivenFlags } from './flags.ts';
import { resolveInterception } from './interception-settings.ts';

const resolvConf =
  'search a.b\nnameserver 10.0.0.10\n  nameserver fd00::10 # second\nnameserver fe80::1%eth0\n#nameserver 9.9.9.9\n';

function rulesOf(flags: GivenFlags, env: NodeJS.ProcessEnv = {}): string[] {
  const host = {
    addresses: () => ['10.0.0.1'],
    readFile: (path: string) => (path === '/etc/resolv.conf' ? resolvConf : ''),
  };
  return dryRunText(resolveInterception(flags, env, host))
    .trimEnd()
    .split('\n');
}

/** Returns the lines of one table and family. */
function section(lines: readonly string[], table: string, family = 'iptables'): string[] {
  const from = lines.indexOf(`* ${table}`, lines.indexOf(`# ${family}-restore --noflush`));
  return from < 0 ? [] : lines.slice(from + 1, lines.indexOf('COMMIT', from));
}

const appended = (lines: readonly string[]): string[] => lines.filter((line) => !line.startsWith('-N'));

test('default flags result in twelve rules (§10.3)', () => {
  expect(rulesOf({})).toEqual([
    '# iptables-restore --noflush',
    '* nat',
    '-N ISTIO_INBOUND',
    '-N ISTIO_REDIRECT',
    '-N ISTIO_IN_REDIRECT',
    '-N ISTIO_OUTPUT',
    '-A ISTIO_INBOUND -p tcp --dport 15008 -j RETURN',
    '-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001',
    '-A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006',
    '-A OUTPUT -p tcp -j ISTIO_OUTPUT',
    '-A ISTIO_OUTPUT -o lo -s 127.0.0.6/32 -j RETURN',
    '-A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT',
    '-A ISTIO_OUTPUT -o lo -m owner ! --uid-owner 1337 -j RETURN',
    '-A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN',
    '-A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -m owner --gid-owner 1337 -j ISTIO_IN_REDIRECT',
    '-A ISTIO_OUTPUT -o lo -m owner ! --gid-owner 1337 -j RETURN',
    '-A ISTIO_OUTPUT -m owner --gid-owner 1337 -j RETURN',
    '-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN',
    'COMMIT',
  ]);
});

test('IPv6 rules equal the IPv4 rules with IPv6 addresses, and follow them', () => {
  const lines = rulesOf({ forceIpv6: 'true' });
  const v6 = section(lines, 'nat', 'ip6tables');
  expect(v6.map((line) => line.replace('::6/128', '127.0.0.6/32').replace('::1/128', '127.0.0.1/32'))).toEqual(
    section(lines, 'nat'),
  );
  expect(v6.join('\n')).toContain('::1/128');
  expect(lines.indexOf('# ip6tables-restore --noflush')).toBeGreaterThan(lines.indexOf('# iptables-restore --noflush'));
});

test("the injector's flags capture all ports and destinations except some (§10.2 rows 4, 6, 7, 8, 9, 10, 11, 12, 15, 16, 17, 18)", () => {
  const lines = rulesOf({
    ...{ inboundPorts: '*', inboundPortsExclude: '15090,15021,,', outboundRanges: '*', outboundPortsExclude: '25' },
    ...{ outboundRangesExclude: '10.1.0.0/16,fd00::/8', outboundPorts: '3306', proxyUid: '1337', forceIpv6: 'true' },
  });
  expect(appended(section(lines, 'nat'))).toEqual([
    '-A ISTIO_INBOUND -p tcp --dport 15008 -j RETURN',
    '-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001',
    '-A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006',
    '-A PREROUTING -p tcp -j ISTIO_INBOUND',
    '-A ISTIO_INBOUND -p tcp --dport 15090 -j RETURN',
    '-A ISTIO_INBOUND -p tcp --dport 15021 -j RETURN',
    '-A ISTIO_INBOUND -p tcp -j ISTIO_IN_REDIRECT',
    '-A OUTPUT -p tcp -j ISTIO_OUTPUT',
    '-A ISTIO_OUTPUT -p tcp --dport 25 -j RETURN',
    '-A ISTIO_OUTPUT -o lo -s 127.0.0.6/32 -j RETURN',
    '-A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT',
    '-A ISTIO_OUTPUT -o lo -m owner ! --uid-owner 1337 -j RETURN',
    '-A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN',
    '-A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -m owner --gid-owner 1337 -j ISTIO_IN_REDIRECT',
    '-A ISTIO_OUTPUT -o lo -m owner ! --gid-owner 1337 -j RETURN',
    '-A ISTIO_OUTPUT -m owner --gid-owner 1337 -j RETURN',
    '-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN',
    '-A ISTIO_OUTPUT -d 10.1.0.0/16 -j RETURN',
    '-A ISTIO_OUTPUT -p tcp --dport 3306 -j ISTIO_REDIRECT',
    '-A ISTIO_OUTPUT -j ISTIO_REDIRECT',
  ]);
  expect(section(lines, 'nat', 'ip6tables')).toContain('-A ISTIO_OUTPUT -d fd00::/8 -j RETURN');
});

test("lists of ports and ranges result in one rule for each item, followed by a RETURN (§10.2 rows 7', 18')", () => {
  const lines = section(
    rulesOf({ inboundPorts: '80,443', inboundPortsExclude: '9', outboundRanges: '10.0.0.0/8,172.16.0.0/12,fd00::/8' }),
    'nat',
  );
  expect(lines.filter((line) => line.includes('ISTIO_IN_REDIRECT') && line.includes('--dport'))).toEqual([
    '-A ISTIO_INBOUND -p tcp --dport 80 -j ISTIO_IN_REDIRECT',
    '-A ISTIO_INBOUND -p tcp --dport 443 -j ISTIO_IN_REDIRECT',
  ]);
  expect(lines.slice(-4)).toEqual([
    '-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN',
    '-A ISTIO_OUTPUT -d 10.0.0.0/8 -j ISTIO_REDIRECT',
    '-A ISTIO_OUTPUT -d 172.16.0.0/12 -j ISTIO_REDIRECT',
    '-A ISTIO_OUTPUT -j RETURN',
  ]);
  expect(lines.join()).not.toContain('--dport 9 ');
});

test('connections from other senders to an included loopback range are captured (§10.2 row 11b)', () => {
  for (const range of ['127.1.2.0/24', '::1/128']) {
    const lines = rulesOf({ outboundRanges: `10.0.0.0/8,${range}` });
    expect(lines.filter((line) => line.includes('! --uid-owner') || line.includes('! --gid-owner'))).toEqual([]);
  }
});

test('rules for excluded interfaces come first, and those for virtual machines are inserted (§10.2 rows 1, 2, 18)', () => {
  const flags: GivenFlags = { excludeInterfaces: 'net1, net2', kubevirtInterfaces: 'vnet0,vnet1' };
  expect(
    section(rulesOf({ ...flags, outboundRanges: '*' }), 'nat').filter((line) => /(-i|-o) v?net/.test(line)),
  ).toEqual([
    '-A PREROUTING -i net1 -j RETURN',
    '-A OUTPUT -o net1 -j RETURN',
    '-A PREROUTING -i net2 -j RETURN',
    '-A OUTPUT -o net2 -j RETURN',
    '-I PREROUTING 1 -i vnet0 -j RETURN',
    '-I PREROUTING 1 -i vnet1 -j RETURN',
    '-I PREROUTING 1 -i vnet0 -j ISTIO_REDIRECT',
    '-I PREROUTING 1 -i vnet1 -j ISTIO_REDIRECT',
  ]);
  const natRules = section(rulesOf({ ...flags, outboundRanges: '10.0.0.0/8' }), 'nat');
  expect(natRules.slice(-4)).toEqual([
    '-I PREROUTING 1 -i vnet0 -d 10.0.0.0/8 -j ISTIO_REDIRECT',
    '-I PREROUTING 1 -i vnet1 -d 10.0.0.0/8 -j ISTIO_REDIRECT',
    '-A ISTIO_OUTPUT -d 10.0.0.0/8 -j ISTIO_REDIRECT',
    '-A ISTIO_OUTPUT -j RETURN',
  ]);
});

test('TPROXY uses table mangle before nat (§10.2 rows 1, 3, 5, 6, 7, 20)', () => {
  const lines = rulesOf({
    ...{ mode: 'TPROXY', inboundPorts: '*', inboundPortsExclude: '22', excludeInterfaces: 'net1', dropInvalid: true },
    ...{ tproxyMark: '0x539', proxyUid: '1337', proxyGid: '0' },
  });
  expect(lines.indexOf('* mangle')).toBeLessThan(lines.indexOf('* nat'));
  expect(section(lines, 'mangle')).toEqual([
    '-N ISTIO_DIVERT',
    '-N ISTIO_TPROXY',
    '-N ISTIO_INBOUND',
    '-A PREROUTING -i net1 -j RETURN',
    '-A OUTPUT -o net1 -j RETURN',
    '-A PREROUTING -m conntrack --ctstate INVALID -j DROP',
    '-A ISTIO_DIVERT -j MARK --set-mark 1337',
    '-A ISTIO_DIVERT -j ACCEPT',
    '-A ISTIO_TPROXY ! -d 127.0.0.1/32 -p tcp -j TPROXY --tproxy-mark 1337/0xffffffff --on-port 15006',
    '-A PREROUTING -p tcp -j ISTIO_INBOUND',
    '-A ISTIO_INBOUND -p tcp --dport 22 -j RETURN',
    '-A ISTIO_INBOUND -p tcp -m conntrack --ctstate RELATED,ESTABLISHED -j ISTIO_DIVERT',
    '-A ISTIO_INBOUND -p tcp -j ISTIO_TPROXY',
    '-A PREROUTING -p tcp -m mark --mark 1337 -j CONNMARK --save-mark',
    '-A OUTPUT -p tcp -o lo -m mark --mark 1337 -j RETURN',
    '-A OUTPUT ! -d 127.0.0.1/32 -p tcp -o lo -m owner --uid-owner 1337 -j MARK --set-mark 1338',
    '-A OUTPUT ! -d 127.0.0.1/32 -p tcp -o lo -m owner --gid-owner 0 -j MARK --set-mark 1338',
    '-A OUTPUT -p tcp -m connmark --mark 1337 -j CONNMARK --restore-mark',
    '-I ISTIO_INBOUND 1 -p tcp -m mark --mark 1337 -j RETURN',
    '-I ISTIO_INBOUND 2 -p tcp -s 127.0.0.6/32 -i lo -j RETURN',
    '-I ISTIO_INBOUND 3 -p tcp -i lo -m mark ! --mark 1338 -j RETURN',
  ]);
  expect(section(lines, 'nat')).not.toContain('-A PREROUTING -p tcp -j ISTIO_INBOUND');
  expect(section(rulesOf({ mode: 'TPROXY', inboundPorts: '80' }), 'mangle')).toContain(
    '-A ISTIO_INBOUND -p tcp --dport 80 -m conntrack --ctstate RELATED,ESTABLISHED -j ISTIO_DIVERT',
  );
});

test('DNS to the servers in resolv.conf is captured by address family (§10.2 rows 11, 14, 19)', () => {
  const lines = rulesOf({ redirectDns: true, forceIpv6: 'true' }, { ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE: '2000,java' });
  expect(appended(section(lines, 'nat')).slice(4)).toEqual([
    '-A ISTIO_OUTPUT -o lo -s 127.0.0.6/32 -j RETURN',
    '-A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 53 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT',
    '-A ISTIO_OUTPUT -o lo -p tcp ! --dport 53 -m owner ! --uid-owner 1337 -j RETURN',
    '-A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN',
    '-A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -m owner --gid-owner 1337 -j ISTIO_IN_REDIRECT',
    '-A ISTIO_OUTPUT -o lo -p tcp ! --dport 53 -m owner ! --gid-owner 1337 -j RETURN',
    '-A ISTIO_OUTPUT -m owner --gid-owner 1337 -j RETURN',
    '-A ISTIO_OUTPUT -m owner --gid-owner 2000 -j RETURN',
    '-A ISTIO_OUTPUT -m owner --gid-owner java -j RETURN',
    '-A ISTIO_OUTPUT -p tcp --dport 53 -d 10.0.0.10/32 -j REDIRECT --to-ports 15053',
    '-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN',
    '-A OUTPUT -p udp --dport 53 -m owner --uid-owner 1337 -j RETURN',
    '-A OUTPUT -p udp --dport 53 -m owner --gid-owner 1337 -j RETURN',
    '-A OUTPUT -p udp --dport 53 -m owner --gid-owner 2000 -j RETURN',
    '-A OUTPUT -p udp --dport 53 -m owner --gid-owner java -j RETURN',
    '-A OUTPUT -p udp --dport 53 -d 10.0.0.10/32 -j REDIRECT --to-port 15053',
  ]);
  expect(section(lines, 'raw')).toEqual([
    '-A OUTPUT -p udp --dport 53 -m owner --uid-owner 1337 -j CT --zone 1',
    '-A OUTPUT -p udp --sport 15053 -m owner --uid-owner 1337 -j CT --zone 2',
    '-A OUTPUT -p udp --dport 53 -m owner --gid-owner 1337 -j CT --zone 1',
    '-A OUTPUT -p udp --sport 15053 -m owner --gid-owner 1337 -j CT --zone 2',
    '-A OUTPUT -p udp --dport 53 -d 10.0.0.10/32 -j CT --zone 2',
    '-A PREROUTING -p udp --sport 53 -s 10.0.0.10/32 -j CT --zone 1',
  ]);
  expect(section(lines, 'raw', 'ip6tables').slice(-4)).toEqual([
    '-A OUTPUT -p udp --dport 53 -d fd00::10/128 -j CT --zone 2',
    '-A PREROUTING -p udp --sport 53 -s fd00::10/128 -j CT --zone 1',
    '-A OUTPUT -p udp --dport 53 -d fe80::1/128 -j CT --zone 2',
    '-A PREROUTING -p udp --sport 53 -s fe80::1/128 -j CT --zone 1',
  ]);
});

test('DNS to all servers is captured, and included groups share one rule (§10.2 rows 13, 14, 19)', () => {
  const lines = rulesOf({ redirectDns: true, captureAllDns: true }, { ISTIO_OUTBOUND_OWNER_GROUPS: '1,2' });
  const nat = section(lines, 'nat');
  expect(nat).toContain('-A ISTIO_OUTPUT -m owner ! --gid-owner 1 -m owner ! --gid-owner 2 -j RETURN');
  expect(nat).toContain('-A ISTIO_OUTPUT -p tcp --dport 53 -j REDIRECT --to-ports 15053');
  expect(nat.slice(-2)).toEqual([
    '-A OUTPUT -p udp --dport 53 -m owner ! --gid-owner 1 -m owner ! --gid-owner 2 -j RETURN',
    '-A OUTPUT -p udp --dport 53 -j REDIRECT --to-port 15053',
  ]);
  expect(section(lines, 'raw').slice(-2)).toEqual([
    '-A OUTPUT -p udp --dport 53 -j CT --zone 2',
    '-A PREROUTING -p udp --sport 53 -j CT --zone 1',
  ]);
});

test('G4 routes all protocols through ISTIO_OUTPUT, and does not return HBONE to the proxy (§10.2 rows 8, 11)', () => {
  const nat = section(rulesOf({ generation: 'g4' }), 'nat');
  expect(nat).toContain('-A OUTPUT -j ISTIO_OUTPUT');
  for (const owner of ['uid', 'gid']) {
    expect(nat).toContain(
      `-A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --${owner}-owner 1337 -j ISTIO_IN_REDIRECT`,
    );
  }
});

test('commands create chains first, name the table, and use ip6tables for IPv6', () => {
  const lines = rulesOf({ restoreFormat: 'false', forceIpv6: 'true', mode: 'TPROXY', inboundPorts: '80' });
  expect(lines[0]).toBe('iptables -t nat -N ISTIO_INBOUND');
  expect(lines).toContain('iptables -t mangle -I ISTIO_INBOUND 1 -p tcp -m mark --mark 1337 -j RETURN');
  const programs = lines.map((line) => line.split(' ')[0]);
  expect(programs.lastIndexOf('iptables')).toBeLessThan(programs.indexOf('ip6tables'));
  const chains = lines.filter((line) => line.includes(' -N '));
  expect(new Set(chains).size).toBe(chains.length);
});

test('G4 with DNS returns neither DNS nor HBONE to the proxy (§10.2 rows 11, 12)', () => {
  const nat = section(rulesOf({ generation: 'g4', redirectDns: true, captureAllDns: true }), 'nat');
  for (const owner of ['uid', 'gid']) {
    expect(nat).toContain(
      `-A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -p tcp -m multiport ! --dports 53,15008 -m owner --${owner}-owner 1337 -j ISTIO_IN_REDIRECT`,
    );
  }
});

test('G4 with DNS captures TCP and UDP in ISTIO_OUTPUT_DNS, after the owners (§10.2 rows 14, 19)', () => {
  const lines = rulesOf({ generation: 'g4', redirectDns: true, forceIpv6: 'true' });
  const nat = section(lines, 'nat');
  const jump = nat.indexOf('-A ISTIO_OUTPUT -j ISTIO_OUTPUT_DNS');
  expect(jump).toBeGreaterThan(nat.indexOf('-A ISTIO_OUTPUT -m owner --gid-owner 1337 -j RETURN'));
  expect(nat.slice(jump)).toEqual([
    '-A ISTIO_OUTPUT -j ISTIO_OUTPUT_DNS',
    '-A ISTIO_OUTPUT_DNS -p tcp --dport 53 -d 10.0.0.10/32 -j REDIRECT --to-ports 15053',
    '-A ISTIO_OUTPUT_DNS -p udp --dport 53 -d 10.0.0.10/32 -j REDIRECT --to-port 15053',
    '-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN',
  ]);
  expect(section(lines, 'raw')).toEqual([
    '-N ISTIO_OUTPUT_DNS',
    '-N ISTIO_INBOUND',
    '-A OUTPUT -j ISTIO_OUTPUT_DNS',
    '-A ISTIO_OUTPUT_DNS -p udp --dport 53 -m owner --uid-owner 1337 -j CT --zone 1',
    '-A ISTIO_OUTPUT_DNS -p udp --sport 15053 -m owner --uid-owner 1337 -j CT --zone 2',
    '-A ISTIO_OUTPUT_DNS -p udp --dport 53 -m owner --gid-owner 1337 -j CT --zone 1',
    '-A ISTIO_OUTPUT_DNS -p udp --sport 15053 -m owner --gid-owner 1337 -j CT --zone 2',
    '-A ISTIO_OUTPUT_DNS -p udp --dport 53 -d 10.0.0.10/32 -j CT --zone 2',
    '-A PREROUTING -j ISTIO_INBOUND',
    '-A ISTIO_INBOUND -p udp --sport 53 -s 10.0.0.10/32 -j CT --zone 1',
  ]);
});

test('G4 excludes outbound ports for UDP too, and drops invalid packets in a separate chain (rows 3, 9)', () => {
  const lines = rulesOf({ generation: 'g4', outboundPortsExclude: '53', dropInvalid: true });
  expect(section(lines, 'nat')).toContain('-A ISTIO_OUTPUT -p udp --dport 53 -j RETURN');
  expect(section(lines, 'mangle')).toEqual([
    '-N ISTIO_DROP',
    '-A PREROUTING -m conntrack --ctstate INVALID -j ISTIO_DROP',
    '-A ISTIO_DROP -j DROP',
  ]);
});

test('ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR replaces 127.0.0.1/32 in all IPv4 rules and only there', () => {
  const flags: GivenFlags = { mode: 'TPROXY', inboundPorts: '*', outboundRanges: '*', forceIpv6: 'true' };
  const defaultRules = rulesOf(flags);
  const lines = rulesOf(flags, { ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR: '127.0.0.0/8' });
  expect(lines.filter((line) => line.includes('127.0.0.0/8')).length).toBe(6);
  expect(lines).toEqual(defaultRules.map((line) => line.replace('127.0.0.1/32', '127.0.0.0/8')));
  for (const wrongRange of ['127.0.0.1', '::1/128', '127.0.0.1/33', '*']) {
    expect(() => rulesOf({}, { ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR: wrongRange })).toThrow(
      errorWith({ path: 'ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR', got: JSON.stringify(wrongRange) }),
    );
  }
});

test('native nftables has the G4 rules for both address families in one table', () => {
  const flags: GivenFlags = { nativeNftables: true, inboundPorts: '*', outboundRanges: '*', forceIpv6: 'true' };
  const lines = rulesOf({ ...flags, kubevirtInterfaces: 'vnet+' }).map((line) => line.trim());
  const chain = (name: string): string[] =>
    lines.slice(lines.indexOf(`chain ${name} {`) + 1, lines.indexOf('}', lines.indexOf(`chain ${name} {`)));
  expect(lines.filter((line) => line.startsWith('table'))).toEqual(['table inet istio-proxy-nat {']);
  expect(chain('prerouting')).toEqual([
    'type nat hook prerouting priority -100; policy accept;',
    'iifname "vnet*" counter jump istio-redirect',
    'iifname "vnet*" counter return',
    'meta l4proto tcp counter jump istio-inbound',
  ]);
  expect(chain('istio-output').slice(0, 6)).toEqual([
    'oifname "lo" ip saddr 127.0.0.6/32 counter return',
    'oifname "lo" ip6 saddr ::6/128 counter return',
    'oifname "lo" ip daddr != 127.0.0.1/32 meta l4proto tcp tcp dport != 15008 meta skuid 1337 counter jump istio-in-redirect',
    'oifname "lo" ip6 daddr != ::1/128 meta l4proto tcp tcp dport != 15008 meta skuid 1337 counter jump istio-in-redirect',
    'oifname "lo" meta skuid != 1337 counter return',
    'meta skuid 1337 counter return',
  ]);
  // If IPv6 is off, its packets enter none of the redirection's chains.
  const v4 = rulesOf({ ...flags, forceIpv6: 'false' });
  expect(v4.filter((line) => /hook|nfproto/.test(line)).map((line) => line.trim())).toEqual([
    'type nat hook prerouting priority -100; policy accept;',
    'meta nfproto ipv4 meta l4proto tcp counter jump istio-inbound',
    'type nat hook output priority -100; policy accept;',
    'meta nfproto ipv4 counter jump istio-output',
  ]);
  expect(v4.join('\n')).not.toMatch(/ip6/);
  expect(() => rulesOf({ nativeNftables: true, generation: 'g3' })).toThrow(
    errorWith({ code: 'FIELD_NOT_ALLOWED', path: '--generation', got: '"g3"' }),
  );
});
