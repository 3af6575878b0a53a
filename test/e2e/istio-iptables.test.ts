/**
 * `pilot-agent istio-iptables` with the real iptables in a new network namespace, checked by where connections arrive.
 * Listeners represent Envoy (15001, 15006, 15008), the agent (15053) and the applications.
 */
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findIptables, requireIptables } from '../harness/iptables.ts';
import { type CommandResult, type NetworkSide, PodNetwork } from '../harness/pod-network.ts';
import { programFile } from '../harness/program-files.ts';
import {
  application,
  expectResponses,
  other,
  outsideAddress,
  ownAddress,
  podNetwork,
  proxy,
  stateOf,
} from '../harness/redirected-pod.ts';
import { isFull, sized } from '../harness/size-of-run.ts';

beforeAll(() => requireIptables());

function agent(
  side: NetworkSide,
  args: readonly string[],
  { uid, env = {}, command = 'istio-iptables' }: { uid?: number; env?: NodeJS.ProcessEnv; command?: string } = {},
): Promise<CommandResult> {
  const program = [process.execPath, programFile('pilot-agent'), command, ...args];
  return side.run(program, { env, ...(uid !== undefined && { uid }) });
}

async function redirect(side: NetworkSide, ...args: string[]): Promise<void> {
  const { exitCode, stderr } = await agent(side, args);
  expect(stderr).toBe('');
  expect(exitCode).toBe(0);
}

const allOptions = ['-b', '*', '-d', '15090,9999', '-i', '*', '-x', '10.88.0.0/16', '-o', '7777', '--force-ipv6=true'];

test('istio-iptables redirects all connections except excluded and local ones and those of the proxy (§10.2)', async () => {
  const { pod, neighbour } = await podNetwork();
  await expectResponses(neighbour, application, { [`tcp ${ownAddress.v4} 8080`]: `8080 for ${ownAddress.v4}:8080` });
  await redirect(pod, ...allOptions);
  for (const family of ['v4', 'v6'] as const) {
    const ownAddressOfFamily = ownAddress[family];
    const farAddress = other[family];
    await expectResponses(neighbour, application, {
      [`tcp ${ownAddressOfFamily} 8080`]: `15006 for ${ownAddressOfFamily}:8080`,
      [`tcp ${ownAddressOfFamily} 1`]: `15006 for ${ownAddressOfFamily}:1`,
      [`tcp ${ownAddressOfFamily} 9999`]: `9999 for ${ownAddressOfFamily}:9999`,
      [`tcp ${ownAddressOfFamily} 15008`]: `15008 for ${ownAddressOfFamily}:15008`,
    });
    await expectResponses(pod, application, {
      [`tcp ${farAddress} 80`]: `15001 for ${farAddress}:80`,
      [`tcp ${farAddress} 7777`]: `7777 for ${farAddress}:7777`,
      [`tcp ${ownAddressOfFamily} 8080`]: `8080 for ${ownAddressOfFamily}:8080`,
    });
    await expectResponses(pod, proxy, {
      [`tcp ${farAddress} 80`]: `80 for ${farAddress}:80`,
      [`tcp ${ownAddressOfFamily} 8080`]: `15006 for ${ownAddressOfFamily}:8080`,
    });
  }
  await expectResponses(pod, application, {
    [`tcp ${outsideAddress} 80`]: `80 for ${outsideAddress}:80`,
    'tcp 127.0.0.1 8080': '8080 for 127.0.0.1:8080',
    'tcp ::1 8080': '8080 for ::1:8080',
  });
});

test('include lists redirect only the listed connections', async () => {
  const { pod, neighbour } = await podNetwork();
  await redirect(pod, '-b', '8080', '-i', '10.88.0.0/16', '-q', '443', '--force-ipv6=false');
  await expectResponses(neighbour, application, {
    [`tcp ${ownAddress.v4} 8080`]: `15006 for ${ownAddress.v4}:8080`,
    [`tcp ${ownAddress.v4} 9999`]: `9999 for ${ownAddress.v4}:9999`,
    [`tcp ${ownAddress.v6} 8080`]: `8080 for ${ownAddress.v6}:8080`,
  });
  await expectResponses(pod, application, {
    [`tcp ${outsideAddress} 80`]: `15001 for ${outsideAddress}:80`,
    [`tcp ${other.v4} 443`]: `15001 for ${other.v4}:443`,
    [`tcp ${other.v4} 80`]: `80 for ${other.v4}:80`,
  });
});

test('connections of excluded interfaces and excluded group owners are not redirected', async () => {
  const { pod, neighbour } = await podNetwork();
  await redirect(pod, '-b', '*', '-i', '*', '-c', 'eth0', '--force-ipv6=false');
  await expectResponses(neighbour, application, { [`tcp ${ownAddress.v4} 8080`]: `8080 for ${ownAddress.v4}:8080` });
  await expectResponses(pod, application, { [`tcp ${other.v4} 80`]: `80 for ${other.v4}:80` });
  await agent(pod, ['-c', 'eth0'], { command: 'istio-clean-iptables' });
  const env = { ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE: '2000' };
  expect(await agent(pod, ['-i', '*', '--force-ipv6=false'], { env })).toMatchObject({ exitCode: 0 });
  await expectResponses(pod, application, { [`tcp ${other.v4} 80`]: `15001 for ${other.v4}:80` });
  await expectResponses(pod, 2000, { [`tcp ${other.v4} 80`]: `80 for ${other.v4}:80` });
});

describe('DNS capture', () => {
  async function withNameServer(...args: string[]): Promise<PodNetwork> {
    const network = await podNetwork();
    const folder = mkdtempSync(join(tmpdir(), 'resolv-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'resolv.conf');
    writeFileSync(file, `search shop.svc.cluster.local\nnameserver ${other.v4}\nnameserver ${other.v6}\n`);
    await redirect(network.pod, '-i', '*', '--redirect-dns', '--resolv-conf', file, '--force-ipv6=true', ...args);
    return network;
  }

  test('redirects UDP and TCP queries to the servers of resolv.conf to the agent, except the agent’s own queries', async () => {
    const { pod } = await withNameServer();
    for (const server of [other.v4, other.v6]) {
      await expectResponses(pod, application, {
        [`udp ${server} 53`]: '15053',
        [`tcp ${server} 53`]: `15053 for ${server}:53`,
      });
      await expectResponses(pod, proxy, { [`udp ${server} 53`]: '53', [`tcp ${server} 53`]: `53 for ${server}:53` });
    }
    await expectResponses(pod, application, { [`udp ${outsideAddress} 53`]: '53' });
    // A query of an application and one of the agent from the same port each get their own response.
    for (const [server, port] of [
      [other.v4, 5555],
      [other.v6, 5556],
    ] as const) {
      await expectResponses(pod, application, { [`udp ${server} 53 ${port}`]: '15053' });
      await expectResponses(pod, proxy, { [`udp ${server} 53 ${port}`]: '53' });
      await expectResponses(pod, application, { [`udp ${server} 53 ${port}`]: '15053' });
    }
  });

  test('redirects queries to any other server with --capture-all-dns', async () => {
    const { pod } = await withNameServer('--capture-all-dns');
    await expectResponses(pod, application, { [`udp ${outsideAddress} 53`]: '15053', [`udp ${other.v4} 53`]: '15053' });
  });
});

test('TPROXY preserves the destination and both addresses of inbound connections', async () => {
  const network = await PodNetwork.start();
  onTestFinished(() => network.end());
  const { pod, neighbour } = network;
  await pod.listen({ ports: ['tproxy 15006', 'tcp 8080', 'tcp 9999'] });
  await pod.listen({ ports: ['tcp 15001'], uid: proxy });
  await neighbour.listen({ ports: ['tcp 80'] });
  await redirect(pod, '-m', 'TPROXY', '-b', '*', '-d', '9999', '-i', '*', '--force-ipv6=true');
  for (const family of ['v4', 'v6'] as const) {
    const ownAddressOfFamily = ownAddress[family];
    await expectResponses(neighbour, application, {
      [`tcp ${ownAddressOfFamily} 8080`]: `15006 for ${ownAddressOfFamily}:8080`,
      [`tcp ${ownAddressOfFamily} 9999`]: `9999 for ${ownAddressOfFamily}:9999`,
    });
    await expectResponses(pod, application, {
      [`tcp ${other[family]} 80`]: `15001 for ${other[family]}:80`,
      [`tcp ${ownAddressOfFamily} 8080`]: `8080 for ${ownAddressOfFamily}:8080`,
    });
    await expectResponses(pod, proxy, { [`tcp ${other[family]} 80`]: `80 for ${other[family]}:80` });
  }
});

describe('cleanup of istio-iptables', () => {
  /** Starting the program takes 250 ms each time, so only the largest rule sets are applied twice. */
  const isTriedTwice = new Set(
    sized({ short: ['TPROXY with all options'], full: ['REDIRECT', 'TPROXY with all options', 'G4'] }),
  );

  test.each([
    ['REDIRECT', allOptions],
    [
      'TPROXY with all options',
      [
        ...[
          '-m',
          'TPROXY',
          '-b',
          '*',
          '-d',
          '9999',
          '-c',
          'net1,net2',
          '-i',
          '*',
          '-k',
          'vnet0',
          '-q',
          '443',
          '-o',
          '25',
        ],
        ...['--redirect-dns', '--capture-all-dns', '--drop-invalid', '--iptables-trace-logging', '--force-ipv6=true'],
      ],
    ],
    ['G4', ['--generation', 'g4', '-b', '*', '-i', '10.0.0.0/8', '--redirect-dns', '--capture-all-dns']],
  ])('leaves no rule of %s (§10.6)', async (name, args) => {
    const network = await PodNetwork.start();
    onTestFinished(() => network.end());
    const { pod } = network;
    const initialState = await stateOf(pod);
    await redirect(pod, ...args);
    expect(await stateOf(pod)).toContain('ISTIO_OUTPUT');
    expect(await agent(pod, args, { command: 'istio-clean-iptables' })).toMatchObject({ exitCode: 0 });
    expect(await stateOf(pod)).toBe(initialState);
    if (!isTriedTwice.has(name)) return;
    // A repeated cleanup ignores missing rules, and the rules can be applied again.
    expect(await agent(pod, [...args, '--cleanup-only'])).toMatchObject({ exitCode: 0 });
    await redirect(pod, ...args);
  });

  test.each(['g3', 'g4'])('leaves no connection redirected, even without other flags (%s)', async (generation) => {
    const { pod, neighbour } = await podNetwork();
    await redirect(pod, ...allOptions, '--generation', generation);
    await agent(pod, [], { command: 'istio-clean-iptables' });
    await expectResponses(neighbour, application, {
      [`tcp ${ownAddress.v4} 8080`]: `8080 for ${ownAddress.v4}:8080`,
    });
    await expectResponses(pod, application, { [`tcp ${other.v4} 80`]: `80 for ${other.v4}:80` });
    expect(await stateOf(pod)).not.toContain('ISTIO_');
  });
});

test('one iptables command per rule produces the same rules as iptables-restore', async () => {
  const network = await PodNetwork.start();
  onTestFinished(() => network.end());
  const { pod, neighbour } = network;
  await redirect(pod, ...allOptions);
  await redirect(neighbour, ...allOptions, '--restore-format=false');
  const rules = async (side: NetworkSide): Promise<string[]> =>
    (await stateOf(side)).split('\n').filter((line) => /^[-:]/.test(line));
  expect(await rules(neighbour)).toEqual(await rules(pod));
});

test.runIf(isFull)('a second run as G4 changes nothing, and other flags are rejected without --reconcile', async () => {
  const network = await PodNetwork.start();
  onTestFinished(() => network.end());
  const { pod } = network;
  const g4 = ['--generation', 'g4', '-b', '*', '-i', '10.0.0.0/8', '--force-ipv6=true'];
  await redirect(pod, ...g4);
  const first = await stateOf(pod);
  const secondRun = await agent(pod, g4);
  expect(secondRun).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('already redirected') });
  expect(await stateOf(pod)).toBe(first);
  const otherFlags = [...g4, '-o', '25'];
  expect(await agent(pod, otherFlags)).toMatchObject({
    exitCode: 255,
    stderr: expect.stringMatching(
      /rules of a previous run with other flags are present \[IPTABLES_FAILED\]\n.*--reconcile/,
    ),
  });
  expect(await agent(pod, [...g4, '--force-apply'])).toMatchObject({ exitCode: 255 });
  expect(await stateOf(pod)).toBe(first);
  await redirect(pod, ...otherFlags, '--reconcile');
  const replacedState = await stateOf(pod);
  expect(replacedState).toContain('--dport 25 -j RETURN');
  expect(replacedState.split('\n').length).toBe(first.split('\n').length + 4);
  // The first case has one rule more than these flags create; in the second one, another program replaced a rule.
  expect(await agent(pod, g4)).toMatchObject({ exitCode: 255 });
  await pod.run(['iptables', '-t', 'nat', '-R', 'ISTIO_OUTPUT', '1', '-d', '1.2.3.4', '-j', 'RETURN']);
  expect(await agent(pod, otherFlags)).toMatchObject({ exitCode: 255 });
  await redirect(pod, ...otherFlags, '--reconcile');
  expect(await stateOf(pod)).toBe(replacedState);
});

test.runIf(isFull)('G4 replaces G3 with --reconcile, and leaves the rules unchanged if it fails', async () => {
  const network = await PodNetwork.start();
  onTestFinished(() => network.end());
  const { pod } = network;
  const flags = ['-b', '*', '-i', '10.0.0.0/8', '--force-ipv6=true'];
  const g4 = ['--generation', 'g4', ...flags, '--reconcile'];
  await redirect(pod, ...flags);
  await pod.run(['iptables', '-A', 'INPUT', '-s', '1.2.3.4', '-j', 'DROP']);
  const first = await stateOf(pod);
  expect(first).toContain('-A OUTPUT -p tcp -j ISTIO_OUTPUT');
  // Fails after the IPv4 rules were created.
  const folder = mkdtempSync(join(tmpdir(), 'iptables-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const program = join(folder, 'ip6tables-restore');
  writeFileSync(
    program,
    `#!/bin/sh\n[ "$1" = --noflush ] && exit 3\nexec ${join(dirname(findIptables(process.env)!), 'ip6tables-restore')} "$@"\n`,
  );
  chmodSync(program, 0o755);
  const env = { PATH: `${folder}:${process.env.PATH}` };
  const partialOptions = [...g4, '--redirect-dns', '--capture-all-dns', '--drop-invalid'];
  expect(await agent(pod, partialOptions, { env })).toMatchObject({
    exitCode: 255,
    stdout: expect.stringContaining('previous rules restored'),
    stderr: expect.stringContaining('exit code 3'),
  });
  expect(await stateOf(pod)).toBe(first);
  await redirect(pod, ...g4);
  const replacedState = await stateOf(pod);
  expect(replacedState).toContain('-A OUTPUT -j ISTIO_OUTPUT');
  expect(replacedState).not.toContain('-A OUTPUT -p tcp -j ISTIO_OUTPUT');
  expect(replacedState).toContain('-A INPUT -s 1.2.3.4/32 -j DROP');
});

test('istio-iptables applies the rules in another network namespace that is given as a file', async () => {
  const { pod, neighbour } = await podNetwork();
  await redirect(neighbour, '-i', '*', '--network-namespace', pod.namespaceFile, '--cni-mode');
  expect(await stateOf(neighbour)).not.toContain('ISTIO_');
  await expectResponses(pod, application, { [`tcp ${other.v4} 80`]: `15001 for ${other.v4}:80` });
});

test('the other network namespace determines the IP families, and validation runs there', async () => {
  const network = await PodNetwork.start();
  onTestFinished(() => network.end());
  const { pod, neighbour } = network;
  await pod.configure([`addr del ${ownAddress.v4}/24 dev eth0`]);
  await neighbour.configure([`addr del ${other.v6}/64 dev eth0`]);
  await redirect(neighbour, '-b', '*', '-i', '*');
  const podOptions = [
    '--network-namespace',
    pod.namespaceFile,
    '--cni-mode',
    '--run-validation',
    '--probe-timeout',
    '2s',
  ];
  expect(await agent(neighbour, [...podOptions, '--skip-rule-apply'])).toMatchObject({
    exitCode: 126,
    stderr: expect.stringContaining('::6:15002'),
  });
  await redirect(neighbour, '-b', '*', '-i', '*', ...podOptions);
  expect((await pod.run(['ip6tables-save'])).stdout).toContain('ISTIO_OUTPUT');
});

describe('the validation of istio-iptables (§10.5)', () => {
  test('passes if the rules exist, and exits with 126 otherwise', async () => {
    const network = await PodNetwork.start();
    onTestFinished(() => network.end());
    const { pod } = network;
    const trial = ['--run-validation', '--skip-rule-apply', '--probe-timeout', '2s'];
    for (const ipv6 of ['--force-ipv6=false', '--force-ipv6=true']) {
      const failedTrial = await agent(pod, [...trial, ipv6]);
      expect(failedTrial).toMatchObject({ exitCode: 126 });
      expect(failedTrial.stderr).toMatch(/traffic is not redirected: .*15002.*\n.*CNI/);
    }
    await redirect(pod, '-b', '*', '-i', '*', '--force-ipv6=true', '--run-validation');
    const otherFlags = [
      { uid: 0, ipv6: true },
      { uid: proxy, ipv6: false },
    ];
    const trials = [{ uid: proxy, ipv6: true }, { uid: 0, ipv6: false }, ...sized({ short: [], full: otherFlags })];
    for (const { uid, ipv6 } of trials) {
      expect(await agent(pod, [...trial, `--force-ipv6=${ipv6}`], { uid })).toMatchObject({ exitCode: 0, stderr: '' });
    }
  });

  test('rejects a probe connection that another server accepts', async () => {
    const network = await PodNetwork.start();
    onTestFinished(() => network.end());
    await network.pod.listen({ ports: ['tcp 15002'] });
    expect(
      await agent(network.pod, [
        '--run-validation',
        '--skip-rule-apply',
        '--probe-timeout',
        '1s',
        '--force-ipv6=false',
      ]),
    ).toMatchObject({ exitCode: 126, stderr: expect.stringMatching(/another server accepted the connection/) });
  });
});

describe('a failure of istio-iptables', () => {
  test('is reported if NET_ADMIN or iptables is missing, or if rules already exist', async () => {
    const network = await PodNetwork.start();
    onTestFinished(() => network.end());
    const { pod } = network;
    expect(await agent(pod, [], { uid: 65534 })).toMatchObject({
      exitCode: 255,
      stderr: expect.stringMatching(/NET_ADMIN is missing \(uid 65534\).*\n.*as root/),
    });
    expect(await agent(pod, ['--dry-run'], { uid: 65534 })).toMatchObject({ exitCode: 0 });
    expect(await agent(pod, [], { env: { PATH: '/nowhere' } })).toMatchObject({
      exitCode: 255,
      stderr: expect.stringMatching(/iptables-save not found in PATH.*\n.*apt-get install iptables/),
    });
    await redirect(pod);
    expect(await agent(pod, ['--force-apply'])).toMatchObject({
      exitCode: 255,
      stderr: expect.stringMatching(/iptables-restore --noflush: exit code \d+: .*\n.*istio-clean-iptables/s),
    });
  });

  test('is reported after retries if another process holds the lock, and otherwise immediately (§10.4)', async () => {
    const network = await PodNetwork.start();
    onTestFinished(() => network.end());
    const folder = mkdtempSync(join(tmpdir(), 'iptables-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const program = join(folder, 'iptables-restore');
    const env = { PATH: `${folder}:${process.env.PATH}` };
    const failing = (exitCode: number): void => {
      const lines = [
        '#!/bin/sh',
        `echo once >> ${folder}/calls`,
        `[ $(wc -l < ${folder}/calls) -ge 3 ] && exit 0`,
        'echo "Another app is currently holding the xtables lock." >&2',
        `exit ${exitCode}`,
      ];
      rmSync(join(folder, 'calls'), { force: true });
      writeFileSync(program, `${lines.join('\n')}\n`);
      chmodSync(program, 0o755);
    };
    failing(4);
    expect(await agent(network.pod, ['--force-ipv6=false'], { env })).toMatchObject({ exitCode: 0 });
    failing(2);
    expect(await agent(network.pod, ['--force-ipv6=false'], { env })).toMatchObject({ exitCode: 255 });
  });

  test('istio-iptables never interprets a flag’s value as a command, a second word or a second rule', async () => {
    const network = await PodNetwork.start();
    onTestFinished(() => network.end());
    const { pod } = network;
    const folder = mkdtempSync(join(tmpdir(), 'hostile-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const mark = join(folder, 'mark');
    const initialState = await stateOf(pod);
    const invalidOptions = [
      ['--istio-exclude-interfaces', `eth0;touch ${mark}`],
      ['--istio-local-exclude-ports', '80\n-A OUTPUT -j DROP'],
      ['--envoy-port', '15001 -j ACCEPT'],
      ['--istio-inbound-ports', `80$(touch ${mark})`],
      ['--proxy-uid', `\`touch ${mark}\``],
      ['--kube-virt-interfaces', '--to-ports'],
    ] as const;
    // src/iptables/interception-settings.test.ts covers all of them.
    for (const [flag, value] of invalidOptions.slice(0, sized({ short: 3, full: invalidOptions.length }))) {
      const { exitCode, stderr } = await agent(pod, [flag, value]);
      expect(exitCode).toBe(1);
      expect(stderr).toContain(flag);
      expect(stderr).toContain(JSON.stringify(value.trim()));
    }
    expect(existsSync(mark)).toBe(false);
    expect(await stateOf(pod)).toBe(initialState);
  });
});
