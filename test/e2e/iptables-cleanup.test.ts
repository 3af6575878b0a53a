/**
 * Applying a redirection is idempotent, and a cleanup without its flags removes it and keeps rules of other programs. Uses real iptables
 * and nft in new network namespaces.
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { GivenFlags } from '../../src/iptables/flags.ts';
import { findIptables, requireIptables } from '../harness/iptables.ts';
import type { NetworkSide } from '../harness/pod-network.ts';
import { applyIn, cleanIn, emptyPodNetwork, stateOf } from '../harness/redirected-pod.ts';
import { sized } from '../harness/size-of-run.ts';

beforeAll(() => requireIptables());

const dns: GivenFlags = { redirectDns: true };
const allDns: GivenFlags = { redirectDns: true, captureAllDns: true };
const redirect: GivenFlags = {
  inboundPorts: '*',
  inboundPortsExclude: '15090',
  outboundRanges: '*',
  forceIpv6: 'true',
};
const tproxy: GivenFlags = { ...redirect, mode: 'TPROXY' };
/** Flags whose rules look like those of other programs. */
const unmarked: GivenFlags = { excludeInterfaces: 'net1,eth+', kubevirtInterfaces: 'vnet0', dropInvalid: true };
const g4: GivenFlags = { generation: 'g4' };
const nft: GivenFlags = { nativeNftables: true };

const modes: Readonly<Record<string, GivenFlags>> = {
  REDIRECT: redirect,
  'REDIRECT of lists, IPv4 alone': { inboundPorts: '80', outboundRanges: '10.0.0.0/8', forceIpv6: 'false' },
  'REDIRECT with the DNS of resolv.conf': { ...redirect, ...dns },
  'REDIRECT with all DNS': { ...redirect, ...allDns },
  'REDIRECT with all DNS, other owners, packets logged': {
    ...{ ...redirect, ...allDns, ...unmarked, proxyUid: '1337,0', proxyGid: '2000', traceLogging: 'true' },
  },
  'REDIRECT with interfaces of virtual machines and no ranges': { kubevirtInterfaces: 'vnet0', dropInvalid: true },
  TPROXY: tproxy,
  'TPROXY with another mark and table': { ...tproxy, tproxyMark: '0x77', tproxyRouteTable: '4242' },
  'TPROXY with everything': { ...tproxy, ...allDns, ...unmarked, traceLogging: 'true', outboundPorts: '443' },
  'G4, REDIRECT': { ...redirect, ...g4 },
  'G4, TPROXY with everything': { ...tproxy, ...g4, ...dns, ...unmarked, outboundPortsExclude: '25' },
  'nftables, REDIRECT': { ...redirect, ...nft },
  'nftables, TPROXY with everything': {
    ...tproxy,
    ...nft,
    ...allDns,
    ...unmarked,
    tproxyMark: '0x77',
    traceLogging: 'true',
  },
};

/** Tries each kind of rule in as few modes as possible; in a full run, in all modes. */
function isTried(name: string): boolean {
  return sized({ short: /everything|owners/.test(name), full: true });
}

/** Rules of other programs, as similar to those of chartpilot as possible, in both families. */
const foreignRules: Readonly<Record<string, readonly string[]>> = {
  nat: [
    '-N FOREIGN',
    '-A PREROUTING -p tcp --dport 80 -j REDIRECT --to-ports 3128',
    '-A PREROUTING -i net1 -j RETURN',
    '-A PREROUTING -i net2 -j RETURN',
    '-A PREROUTING -i vnet0 -j RETURN',
    '-A OUTPUT -o net1 -j RETURN',
    '-A OUTPUT -o net2 -j RETURN',
    '-A OUTPUT -p udp --dport 53 -m owner --uid-owner 65534 -j RETURN',
    '-A OUTPUT -p udp --dport 53 -m owner --uid-owner 53 -j REDIRECT --to-ports 5353',
    '-A FOREIGN -p tcp -j REDIRECT --to-ports 15002',
    '-A OUTPUT -p tcp --dport 9 -j FOREIGN',
  ],
  mangle: [
    '-A PREROUTING -m conntrack --ctstate INVALID -j DROP',
    '-A PREROUTING -i net1 -j RETURN',
    '-A OUTPUT -p tcp -m mark --mark 0x1 -j RETURN',
    '-A PREROUTING -p tcp -m mark --mark 0x1 -j CONNMARK --save-mark',
  ],
  raw: [
    '-A OUTPUT -p udp --dport 53 -j CT --zone 9',
    '-A OUTPUT -p udp --dport 53 -m owner --uid-owner 53 -j CT --zone 1',
    '-A PREROUTING -p udp --sport 53 -s 9.9.9.9 -j CT --zone 1',
  ],
  filter: ['-A INPUT -p tcp --dport 15001 -j DROP'],
};

async function addForeignRules(side: NetworkSide): Promise<void> {
  const text = Object.entries(foreignRules)
    .map(([table, lines]) => [`*${table}`, ...lines, 'COMMIT', ''].join('\n'))
    .join('');
  for (const [program, input] of [
    ['iptables-restore', text],
    ['ip6tables-restore', text.replace('9.9.9.9', '9::9')],
  ] as const) {
    expect(await side.run([program, '--noflush'], { input })).toMatchObject({ exitCode: 0 });
  }
  const commands = [
    'ip rule add fwmark 1 lookup 100',
    'ip route add local default dev lo table 100',
    'ip rule add fwmark 0x539 lookup main',
    'nft add table inet istio-proxy-foreign',
    'nft add table inet nat',
  ];
  await side.mustRun('sh', '-ec', commands.join('\n'));
}

test.each(Object.entries(modes).filter(([name]) => isTried(name)))(
  'the rules of "%s" exist only once when applied twice, and a cleanup without flags removes them',
  async (_, flags) => {
    const { pod } = await emptyPodNetwork();
    await addForeignRules(pod);
    const initialState = await stateOf(pod);
    await applyIn(pod, flags);
    const appliedState = await stateOf(pod);
    expect(appliedState).not.toBe(initialState);
    await applyIn(pod, flags);
    expect(await stateOf(pod)).toBe(appliedState);
    await addLater(pod);
    expect(await cleanIn(pod)).toEqual(['redirection.removed']);
    await removeLater(pod);
    expect(await stateOf(pod)).toBe(initialState);
    expect(await cleanIn(pod)).toEqual(['redirection.absent']);
    expect(await stateOf(pod)).toBe(initialState);
  },
);

const laterRule = '-p udp --dport 53 -m owner --uid-owner 65534 -j RETURN';

async function addLater(side: NetworkSide): Promise<void> {
  await side.mustRun(
    'sh',
    '-ec',
    `iptables -t nat -I OUTPUT 1 ${laterRule}; iptables -t raw -A OUTPUT -p udp -j CT --zone 7`,
  );
}

/** Removes the foreign rules; fails if the cleanup already removed them. */
async function removeLater(side: NetworkSide): Promise<void> {
  await side.mustRun(
    'sh',
    '-ec',
    `iptables -t nat -D OUTPUT ${laterRule}; iptables -t raw -D OUTPUT -p udp -j CT --zone 7`,
  );
}

test('a cleanup removes DNS rules that remained after an earlier cleanup of only the chains', async () => {
  const { pod } = await emptyPodNetwork();
  const initialState = await stateOf(pod);
  await applyIn(pod, { ...redirect, ...allDns });
  const chains = ['ISTIO_OUTPUT', 'ISTIO_INBOUND', 'ISTIO_REDIRECT', 'ISTIO_IN_REDIRECT'];
  const commands = ['iptables', 'ip6tables'].flatMap((program) => [
    `${program} -t nat -D OUTPUT -p tcp -j ISTIO_OUTPUT`,
    `${program} -t nat -D PREROUTING -p tcp -j ISTIO_INBOUND`,
    ...['-F', '-X'].flatMap((verb) => chains.map((chain) => `${program} -t nat ${verb} ${chain}`)),
  ]);
  await pod.mustRun('sh', '-ec', commands.join('\n'));
  expect((await stateOf(pod)).match(/^-A .*(15053|port 53 ).*$/gm)).toHaveLength(18);
  await cleanIn(pod);
  expect(await stateOf(pod)).toBe(initialState);
});

test('a cleanup reports a chain that another program references, with the referencing rule, and the chain redirects nothing', async () => {
  const { pod } = await emptyPodNetwork();
  await applyIn(pod, redirect);
  await pod.mustRun('sh', '-ec', 'iptables -t nat -N FOREIGN; iptables -t nat -A FOREIGN -p tcp -j ISTIO_REDIRECT');
  const initialState = await stateOf(pod);
  expect(await cleanIn(pod, { dryRun: true })).toEqual([expect.stringContaining('-D OUTPUT -p tcp -j ISTIO_OUTPUT\n')]);
  expect(await stateOf(pod)).toBe(initialState);
  await expect(cleanIn(pod)).rejects.toMatchObject({
    code: 'REDIRECTION_REMAINS',
    message: expect.stringMatching(
      /iptables -t nat -A FOREIGN -p tcp -j ISTIO_REDIRECT\niptables -t nat -N ISTIO_REDIRECT/,
    ),
  });
  expect((await stateOf(pod)).split('\n').filter((line) => line.includes('ISTIO_'))).toEqual([
    ':ISTIO_REDIRECT - [0:0]',
    '-A FOREIGN -p tcp -j ISTIO_REDIRECT',
  ]);
  await pod.mustRun('iptables', '-t', 'nat', '-F', 'FOREIGN');
  expect(await cleanIn(pod)).toEqual(['redirection.removed']);
});

describe('istio-iptables --reconcile', () => {
  const reconcile: GivenFlags = { reconcile: true };

  test.each([
    ['G3 with all options by G4', { ...tproxy, ...allDns, ...unmarked }, { ...redirect, ...g4 }],
    ['both families by only IPv4', redirect, { ...redirect, forceIpv6: 'false' }],
    ['DNS capture by no DNS capture', { ...redirect, ...dns }, redirect],
    ['iptables by nftables', { ...tproxy, ...allDns }, { ...redirect, ...nft }],
    ['nftables by iptables', { ...tproxy, ...nft, tproxyMark: '0x77' }, { ...redirect, ...dns }],
  ] as const)('replaces %s, leaving only rules of the new flags', async (_, previous, next) => {
    const [freshNetwork, replacedNetwork] = [await emptyPodNetwork(), await emptyPodNetwork()];
    await applyIn(freshNetwork.pod, next);
    await applyIn(replacedNetwork.pod, previous);
    const initialState = await stateOf(replacedNetwork.pod);
    await expect(applyIn(replacedNetwork.pod, next)).rejects.toThrow(
      /rules of a previous run with other flags are present/,
    );
    expect(await stateOf(replacedNetwork.pod)).toBe(initialState);
    await applyIn(replacedNetwork.pod, { ...next, ...reconcile });
    expect(await stateOf(replacedNetwork.pod)).toBe(await stateOf(freshNetwork.pod));
  });
});

test('rules of one IP family are removed if those of the other cannot be applied', async () => {
  const { pod } = await emptyPodNetwork();
  const initialState = await stateOf(pod);
  const folder = mkdtempSync(join(tmpdir(), 'iptables-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const real = join(dirname(findIptables(process.env)!), 'ip6tables-restore');
  const program = join(folder, 'ip6tables-restore');
  writeFileSync(
    program,
    `#!/bin/sh\nrules=$(cat)\ncase $rules in *'-N '*) exit 3 ;; esac\necho "$rules" | ${real} "$@"\n`,
  );
  chmodSync(program, 0o755);
  const { PATH } = process.env;
  onTestFinished(() => {
    process.env.PATH = PATH;
  });
  process.env.PATH = `${folder}:${PATH}`;
  await expect(applyIn(pod, { ...redirect, ...dns })).rejects.toMatchObject({
    code: 'IPTABLES_FAILED',
    message: expect.stringContaining('ip6tables-restore'),
  });
  expect(await stateOf(pod)).toBe(initialState);
});
