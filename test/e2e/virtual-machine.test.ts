/**
 * A sidecar on a virtual machine: an agent whose connections would be redirected to itself refuses to start, and the unit and the commands of
 * docs/virtual-machines.md work. Real Envoy, in new network namespaces.
 */

import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { GivenFlags } from '../../src/iptables/flags.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { envoyBinary, temporaryFolder } from '../fixtures/real-envoy.ts';
import { hostProcesses } from '../harness/host-processes.ts';
import { requireIptables } from '../harness/iptables.ts';
import { linesOf, loggedLine } from '../harness/logged-line.ts';
import type { NetworkSide, PodNetwork } from '../harness/pod-network.ts';
import { Program } from '../harness/program.ts';
import { programFile } from '../harness/program-files.ts';
import { application, applyIn, emptyPodNetwork, expectResponses, other, stateOf } from '../harness/redirected-pod.ts';

beforeAll(() => requireIptables());

const unit = readFileSync(join(packageRoot(), 'deploy/systemd/pilot-agent.service'), 'utf8');
const page = readFileSync(join(packageRoot(), 'docs/virtual-machines.md'), 'utf8');

/** The commands of a block of the page. */
function block(name: string): string {
  const text = new RegExp(`^\`\`\`sh ${name}\n(.*?)^\`\`\``, 'ms').exec(page)?.[1];
  if (text === undefined) throw new Error(`docs/virtual-machines.md has no block ${name}`);
  return text;
}

/** Returns the only value of a setting in the unit. */
function setting(name: string): string {
  const values = [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value]) => value!);
  expect(values).toHaveLength(1);
  return values[0]!;
}

/** Envoy accepts redirected connections at 15001 and forwards them to their original destinations. */
function writeForwarderBootstrap(folder: string): string {
  const address = (port: number) => ({ socket_address: { address: '0.0.0.0', port_value: port } });
  const tcpProxy = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy',
    stat_prefix: 'outbound',
    cluster: 'outbound',
  };
  const originalDst = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.listener.original_dst.v3.OriginalDst',
  };
  const bootstrap = {
    node: { id: 'test', cluster: 'test' },
    admin: { address: { socket_address: { address: '127.0.0.1', port_value: 15000 } } },
    static_resources: {
      listeners: [
        {
          name: 'outbound',
          address: address(15001),
          listener_filters: [{ name: 'original_dst', typed_config: originalDst }],
          filter_chains: [{ filters: [{ name: 'tcp', typed_config: tcpProxy }] }],
        },
      ],
      clusters: [{ name: 'outbound', type: 'ORIGINAL_DST', lb_policy: 'CLUSTER_PROVIDED', connect_timeout: '2s' }],
    },
  };
  const file = join(folder, 'forwarder.json');
  writeFileSync(file, JSON.stringify(bootstrap));
  return file;
}

interface HostAgent {
  readonly folder: string;
  readonly program: Program;
}

/** Starts an agent in the pod's network as this user and group. */
function startAgent(side: NetworkSide, [uid, gid]: readonly [number, number]): HostAgent {
  const temporary = temporaryFolder();
  const folder = temporary.path;
  try {
    linkSync(envoyBinary(), join(folder, 'envoy'));
  } catch {
    copyFileSync(envoyBinary(), join(folder, 'envoy'));
  }
  const bootstrap = writeForwarderBootstrap(folder);
  chmodSync(folder, 0o777);
  const user = ['setpriv', '--reuid', `${uid}`, '--regid', `${gid}`, '--clear-groups'];
  const [executable = '', ...args] = side.within([
    ...(uid === 0 && gid === 0 ? [] : user),
    ...[process.execPath, programFile('pilot-agent'), 'proxy', 'sidecar', '--customConfigFile', bootstrap],
    ...['--binaryPath', join(folder, 'envoy'), '--concurrency', '1', '--runDir', join(folder, 'run')],
    ...['--terminationDrainDuration', '100ms', '--statusPort', '15020', '--proxyAdminPort', '15000'],
  ]);
  const env = { ...process.env, NODE_COMPILE_CACHE: '', HOME: folder, TMPDIR: folder };
  const program = Program.run('pilot-agent on a host', executable, { args, env, cwd: folder });
  onTestFinished(async () => {
    await program.stop();
    temporary[Symbol.dispose]();
  });
  return { folder, program };
}

const envoysIn = (folder: string): number =>
  hostProcesses().filter(({ command }) => command[0] === join(folder, 'envoy')).length;

async function redirectedHost(flags: GivenFlags): Promise<PodNetwork> {
  const network = await emptyPodNetwork();
  await network.neighbour.listen({ ports: ['tcp 80'] });
  await applyIn(network.pod, { inboundPorts: '*', outboundRanges: '*', forceIpv6: 'true', ...flags });
  return network;
}

describe('an agent whose own connections would be redirected to itself', () => {
  test.each<[string, GivenFlags, readonly [number, number], string]>([
    ['root with rules of iptables', {}, [0, 0], 'uid 1337, gid 1337'],
    ['root with rules of nftables', { nativeNftables: true }, [0, 0], 'uid 1337, gid 1337'],
    ['root while another user is excluded', { proxyUid: '2000' }, [0, 0], 'uid 2000, gid 2000'],
  ])('exits without starting Envoy if it runs as %s', async (_, flags, [uid, gid], excludedIds) => {
    const { pod } = await redirectedHost(flags);
    const { folder, program } = startAgent(pod, [uid, gid]);
    const startLine = program.line(loggedLine('restart.ended.live', { epoch: 'epoch-0' })).catch(() => 'not started');
    expect(await Promise.race([program.exited, startLine])).toEqual({ code: 255, signal: null });
    expect(program.output()).toContain(
      'connections of this agent would be redirected to itself: rules of this network namespace redirect connections ' +
        `of uid ${uid}, gid ${gid}; excluded are ${excludedIds} [REDIRECTION_LOOP]\n  → Run the agent as the user and group`,
    );
    expect(linesOf(program.lines, 'agent.runsAsRoot')).toEqual([]);
    expect(program.output()).not.toMatch(/^ +at /m);
    expect(envoysIn(folder)).toBe(0);
  });
});

test('an agent of the excluded user serves redirected connections, without a warning', async () => {
  const { pod } = await redirectedHost({});
  const { program } = startAgent(pod, [Number(setting('User')), Number(setting('Group'))]);
  await program.line(loggedLine('restart.ended.live', { epoch: 'epoch-0' }));
  await expectResponses(pod, application, { [`tcp ${other.v4} 80`]: `80 for ${other.v4}:80` });
  expect(linesOf(program.lines, 'agent.runsAsRoot')).toEqual([]);
  expect(linesOf(program.lines, 'agent.redirectionUnknown')).toEqual([]);
});

test('an agent of root with an excluded group starts, and warns once', async () => {
  const { pod } = await redirectedHost({});
  const { program } = startAgent(pod, [0, 1337]);
  await program.line(loggedLine('restart.ended.live', { epoch: 'epoch-0' }));
  await expectResponses(pod, application, { [`tcp ${other.v4} 80`]: `80 for ${other.v4}:80` });
  expect(linesOf(program.lines, 'agent.runsAsRoot', { uid: 0 })).toHaveLength(1);
});

test('an agent of a user that cannot read the rules starts, and warns once', async () => {
  const { pod } = await emptyPodNetwork();
  const { program } = startAgent(pod, [2000, 2000]);
  await program.line(loggedLine('restart.ended.live', { epoch: 'epoch-0' }));
  expect(linesOf(program.lines, 'agent.redirectionUnknown', { reason: /NET_ADMIN/ })).toHaveLength(1);
});

test("the systemd unit and docs/virtual-machines.md contain the same command, which redirects all users except the unit's", async () => {
  const { pod } = await emptyPodNetwork();
  const initialState = await stateOf(pod);
  const command = setting('ExecStartPre');
  expect(command.replace(/^\+\/usr\/local\/bin\//, '')).toBe(
    block('redirection')
      .replaceAll("'", '')
      .replaceAll(/\s*\\?\n\s*/g, ' ')
      .trim(),
  );
  const run = async (name: string): Promise<void> => {
    const agent = `${process.execPath} ${programFile('pilot-agent')}`;
    const commands = block(name).replaceAll(/^pilot-agent(?= )/gm, agent);
    expect(await pod.run(['sh', '-ec', commands])).toMatchObject({ exitCode: 0, stderr: '' });
  };
  await run('redirection');
  const appliedState = await stateOf(pod);
  await run('redirection');
  expect(await stateOf(pod)).toBe(appliedState);
  for (const id of ['uid', 'gid'] as const) {
    expect(appliedState).toContain(`-m owner --${id}-owner ${setting(id === 'uid' ? 'User' : 'Group')} -j RETURN`);
  }
  const [, ownerCheck = ''] = block('check').split('\n');
  expect(await pod.mustRun('sh', '-ec', ownerCheck)).toContain('ISTIO_OUTPUT');
  await run('removal');
  expect(await stateOf(pod)).toBe(initialState);
});

test("files and settings are written in the form that the unit's agent reads", () => {
  const temporary = temporaryFolder();
  onTestFinished(() => temporary[Symbol.dispose]());
  const root = temporary.path;
  mkdirSync(join(root, 'tmp'));
  for (const name of ['istio-token', 'root-cert.pem']) writeFileSync(join(root, 'tmp', name), name);
  const commands = [block('files'), block('settings')].join('').replaceAll(/(?<=[ "])\/(?=var|tmp|etc)/g, `${root}/`);
  execFileSync('sh', ['-ec', commands]);
  const folder = join(root, setting('WorkingDirectory'));
  for (const file of ['var/run/secrets/tokens/istio-token', 'var/run/secrets/istio/root-cert.pem']) {
    expect(existsSync(join(folder, file)), file).toBe(true);
  }
  // The agent adds the folders of its sockets.
  const folders = ['', 'var', 'var/run', 'var/run/secrets'].map((name) => join(folder, name));
  expect(folders.map((name) => statSync(name).uid)).toEqual(folders.map(() => 1337));
  const file = join(root, setting('EnvironmentFile').replace(/^-/, ''));
  const config = /^PROXY_CONFIG=(.*)$/m.exec(readFileSync(file, 'utf8'))?.[1];
  expect(JSON.parse(config!)).toEqual({ discoveryAddress: 'istiod.istio-system.svc:15012' });
});

const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;

test.skipIf(!hasSystemd)('systemd accepts the unit', () => {
  const temporary = temporaryFolder();
  onTestFinished(() => temporary[Symbol.dispose]());
  const file = join(temporary.path, 'pilot-agent.service');
  writeFileSync(file, unit.replaceAll('/usr/local/bin/pilot-agent', join(packageRoot(), 'bin/pilot-agent')));
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
  expect({ status, output: `${stdout}${stderr}` }).toEqual({ status: 0, output: '' });
});
