/** The images of `deploy/image` under runc: a restricted container of an unknown user. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { packageVersion } from '../../src/runtime/package-root.ts';
import { respondingBootstrap } from '../fixtures/responding-bootstrap.ts';
import { eventually } from '../harness/eventually.ts';
import { loggedLine } from '../harness/logged-line.ts';
import { sized } from '../harness/size-of-run.ts';
import { buildMeshImages } from './mesh-image.ts';
import { requireNodePackages } from './node-packages.ts';
import { type ContainerSettings, RuncContainer, unknownUid, unpackImage } from './runc.ts';

/** Default grace period of a pod. */
const graceMs = 30_000;

const folder = mkdtempSync(join(tmpdir(), 'cp-image-'));
let layout: string;

beforeAll(async () => {
  requireNodePackages();
  layout = await buildMeshImages(join(folder, 'image'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function container(tag: 'agent' | 'discovery', settings: ContainerSettings): RuncContainer {
  const startedContainer = RuncContainer.start(folder, unpackImage(layout, tag, join(folder, tag)), settings);
  onTestFinished(() => startedContainer.end());
  return startedContainer;
}

it('the agent image runs with a read-only root as an unknown user, restarts Envoy without an interruption, and stops in time', async () => {
  const bootstrap = readFileSync(respondingBootstrap(folder, 15000, 8080), 'utf8');
  const agent = container('agent', {
    args: ['/usr/local/bin/pilot-agent', 'proxy', 'sidecar', '--customConfigFile', '/etc/istio/proxy/bootstrap.json'],
    files: { 'bootstrap.json': bootstrap },
  });
  const hopeless = () => agent.program.hopeless();
  const get = async (url: string): Promise<string> => {
    const script = `fetch('${url}').then(async (r) => console.log(r.status, await r.text()))`;
    return (await agent.exec('node', '-e', script)).output;
  };
  const isReady = async () => (await get('http://127.0.0.1:15020/healthz/ready')).startsWith('200');
  await eventually('the agent is ready', isReady, { hopeless });
  expect(await get('http://127.0.0.1:8080/')).toContain('200 hello');
  const { output } = await agent.exec('node', '-p', 'process.getuid() + " " + fs.readdirSync("/proc").length');
  expect(output).toMatch(new RegExp(`^${unknownUid} `));
  expect((await agent.exec('node', '-e', 'fs.writeFileSync("/tmp/file", "")')).output).toContain('EROFS');
  // Programs with which users inspect a pod, and the page saved by docs/debugging-a-restart.md.
  for (const command of [
    ['cat', '/etc/passwd'],
    ['find', '/etc/istio'],
    ['ps'],
    ['tar', '--help'],
    ['nft', '--version'],
  ]) {
    expect([...command, (await agent.exec(...command)).code]).toEqual([...command, 0]);
  }
  const savedTrace = await agent.exec(
    'pilot-agent',
    'request',
    '--debug-port',
    '15020',
    'GET',
    '/debug/trace?follow=false',
  );
  expect(savedTrace.output).toContain('"kind":"header"');
  await agent.signal('SIGHUP');
  await agent.program.line(loggedLine('restart.ended.live', { epoch: 'epoch-1' }));
  expect(await get('http://127.0.0.1:8080/')).toContain('200 hello');
  const { code, signal, ms } = await agent.stop();
  expect({ code, signal }).toEqual({ code: 0, signal: null });
  expect(ms).toBeLessThan(graceMs);
});

it('the control plane image runs with a read-only root as an unknown user, and stops within its grace period', async () => {
  const plane = container('discovery', {
    args: ['/usr/local/bin/pilot-discovery', 'discovery', '--registries=', '--configDir=/etc/istio/proxy'],
  });
  const ready = `fetch('http://127.0.0.1:8080/ready').then(({ status }) => process.exit(status === 200 ? 0 : 1))`;
  await eventually('it is ready', async () => (await plane.exec('node', '-e', ready)).code === 0, {
    hopeless: () => plane.program.hopeless(),
  });
  const { code, ms } = await plane.stop();
  expect(code).toBe(0);
  expect(ms).toBeLessThan(graceMs);
});

it('the agent image reports its version without a volume, a network or /proc of the host', async () => {
  const agent = container('agent', { args: ['/usr/local/bin/pilot-agent', 'version', '--short'] });
  expect(await agent.program.exited).toEqual({ code: 0, signal: null });
  expect(agent.program.output()).toContain(packageVersion());
});

// In a nightly run the base layers are built twice from packages, without a cache.
it('two builds of the images have equal digests', async () => {
  const indexOf = async (name: string): Promise<string> => {
    const flags = sized({ short: ['--compression', 'none'], full: ['--cache', join(folder, `cache-${name}`)] });
    return readFileSync(join(await buildMeshImages(join(folder, name), flags), 'index.json'), 'utf8');
  };
  const index = await indexOf('one');
  expect(await indexOf('other')).toBe(index);
  expect(index).toMatch(/"digest":"sha256:[0-9a-f]{64}"/);
});
