import { expect, test } from 'vitest';
import { isPresent, presentRedirection } from './present-redirection.ts';
import { removalText } from './removal.ts';
import { parseSavedRules } from './saved-rules.ts';

const markOptions = { tproxyMark: 1337 };

/** Returns the removal text of a table without its header. */
function removalOf(
  table: string,
  lines: readonly string[],
  names: Parameters<typeof presentRedirection>[1] = markOptions,
): string[] {
  const savedRules = parseSavedRules([`*${table}`, ':OUTPUT ACCEPT [0:0]', ...lines, 'COMMIT'].join('\n'));
  return removalText(presentRedirection(savedRules, names)).split('\n').slice(1, -2);
}

test('rules of other programs are never removed, however similar they are', () => {
  for (const [table, line] of [
    ['nat', '-A OUTPUT -p udp -m udp --dport 53 -m owner --uid-owner 1337 -j RETURN'],
    ['nat', '-A OUTPUT -p udp -m udp --dport 53 -j REDIRECT --to-ports 5353'],
    ['nat', '-A OUTPUT -o eth1 -j RETURN'],
    ['nat', '-A PREROUTING -p tcp -j REDIRECT --to-ports 15006'],
    ['nat', '-A FOREIGN -j ISTIO_REDIRECTION'],
    ['raw', '-A PREROUTING -p udp -m udp --sport 53 -j CT --zone 1'],
    ['raw', '-A OUTPUT -p udp -m udp --dport 53 -m owner --uid-owner 1337 -j CT --zone 1'],
    ['mangle', '-A PREROUTING -m conntrack --ctstate INVALID -j DROP'],
    ['mangle', '-A OUTPUT -o lo -p tcp -m mark --mark 0x1 -j RETURN'],
    ['filter', '-A OUTPUT -p tcp -m tcp --dport 15001 -j ACCEPT'],
  ] as const) {
    const savedRules = parseSavedRules(`*${table}\n:ISTIO_CUSTOM - [0:0]\n:FOREIGN - [0:0]\n${line}\nCOMMIT\n`);
    expect(isPresent(presentRedirection(savedRules, markOptions)), line).toBe(false);
  }
});

test('jumps are deleted before chains are flushed, and chains are flushed before they are deleted', () => {
  expect(
    removalOf('nat', [
      ':ISTIO_OUTPUT - [0:0]',
      ':ISTIO_REDIRECT - [0:0]',
      '-A OUTPUT -p tcp -j ISTIO_OUTPUT',
      '-A OUTPUT -d 10.0.0.10/32 -p udp -m udp --dport 53 -j REDIRECT --to-ports 15053',
      '-A ISTIO_OUTPUT -j ISTIO_REDIRECT',
    ]),
  ).toEqual([
    '-D OUTPUT -p tcp -j ISTIO_OUTPUT',
    '-D OUTPUT -d 10.0.0.10/32 -p udp -m udp --dport 53 -j REDIRECT --to-ports 15053',
    '-F ISTIO_OUTPUT',
    '-F ISTIO_REDIRECT',
    '-X ISTIO_OUTPUT',
    '-X ISTIO_REDIRECT',
  ]);
});

test('a chain is flushed but not deleted if a rule of another program jumps to it', () => {
  const lines = [':ISTIO_REDIRECT - [0:0]', ':FOREIGN - [0:0]', '-A FOREIGN -p tcp -g ISTIO_REDIRECT'];
  expect(removalOf('nat', lines)).toEqual(['-F ISTIO_REDIRECT']);
});

test('an appended rule is deleted by number if equal rules exist', () => {
  const lines = [
    ':ISTIO_NIC_eth1 - [0:0]',
    '-A OUTPUT -o eth1 -j RETURN',
    '-A OUTPUT -j LOG',
    '-A OUTPUT -o eth1 -j RETURN',
  ];
  expect(removalOf('nat', lines)).toEqual(['-D OUTPUT 3', '-F ISTIO_NIC_eth1', '-X ISTIO_NIC_eth1']);
});

test('rules without a marker are removed if the flags name them and the chains exist', () => {
  const names = {
    ...markOptions,
    unrecorded: { excludedInterfaces: ['eth1'], kubevirtInterfaces: [], dropInvalid: false },
  };
  const rule = '-A OUTPUT -o eth1 -j RETURN';
  expect(removalOf('nat', [rule], names)).toEqual([]);
  expect(removalOf('nat', [':ISTIO_OUTPUT - [0:0]', rule], names)).toContain('-D OUTPUT -o eth1 -j RETURN');
  expect(removalOf('nat', [':ISTIO_OUTPUT - [0:0]', ':ISTIO_NIC_eth2 - [0:0]', rule], names)).not.toContain(
    '-D OUTPUT -o eth1 -j RETURN',
  );
});
