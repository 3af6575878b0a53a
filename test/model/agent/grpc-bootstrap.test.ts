/** The bootstrap file of gRPC programs without a proxy: after the certificates, before the workload is ready. */
import { expect, test } from 'vitest';
import { type AgentSettings, defaultSettings } from '../../../machines/agent/settings.ts';
import { AgentWorld } from '../../simulation/agent-world.ts';
import { checkEveryWorld } from './scenes.ts';

checkEveryWorld();

const readyResponse = { ready: true, reason: '' };
const notReady = { ready: false, reason: 'gRPC bootstrap file not written yet' };
const proxylessSettings: Partial<AgentSettings> = { runsEnvoy: false, proxyless: true };
const withCertificates: Partial<AgentSettings> = {
  ...proxylessSettings,
  identity: { ...defaultSettings.identity, source: 'authority', socket: 's', writesOutput: true },
};

async function createStartedWorld(
  settings: Partial<AgentSettings>,
  script: Pick<Partial<AgentWorld>, 'grpcBootstrapResult' | 'secretServer'> = {},
): Promise<AgentWorld> {
  const world = new AgentWorld(settings);
  Object.assign(world, script);
  await world.settle();
  return world;
}

test('a workload that is not proxyless gets no bootstrap file, and is ready without it', async () => {
  const world = await createStartedWorld({ runsEnvoy: false });
  expect(await world.requestReadiness()).toEqual(readyResponse);
  expect(world.grpcBootstrapWrites).toBe(0);
});

test('the bootstrap file is written once, after the certificates, and the workload is not ready before', async () => {
  const world = await createStartedWorld(withCertificates);
  await world.passTime(20_000);
  expect(world.grpcBootstrapWrites).toBe(0);
  expect(await world.requestReadiness()).toEqual(notReady);
  world.reportOutput({ type: 'output.written' });
  await world.settle();
  expect(await world.requestReadiness()).toEqual(readyResponse);
  // A renewed certificate is written to other files.
  world.reportOutput({ type: 'output.written' });
  await world.settle();
  expect(world.grpcBootstrapWrites).toBe(1);
  expect(await world.requestReadiness()).toEqual(readyResponse);
});

test('the workload is not ready while certificates cannot be written', async () => {
  const world = await createStartedWorld(withCertificates);
  world.reportOutput({ type: 'output.failed', reason: 'ENOSPC' });
  await world.passTime(60_000);
  expect(world.grpcBootstrapWrites).toBe(0);
  expect(await world.requestReadiness()).toEqual(notReady);
  world.reportOutput({ type: 'output.written' });
  await world.settle();
  expect(await world.requestReadiness()).toEqual(readyResponse);
});

test('the bootstrap file is written immediately if this agent writes no certificate files', async () => {
  const identity = { ...withCertificates.identity!, writesOutput: false };
  for (const settings of [proxylessSettings, { ...withCertificates, identity }]) {
    expect(await (await createStartedWorld(settings)).requestReadiness()).toEqual(readyResponse);
  }
  const serverWorld = await createStartedWorld(withCertificates, { secretServer: 'a server' });
  expect(await serverWorld.requestReadiness()).toEqual(readyResponse);
});

test('a bootstrap file that cannot be written is retried after 0.5 s, and then with delays of up to 30 s', async () => {
  const world = await createStartedWorld(proxylessSettings, { grpcBootstrapResult: 'EROFS' });
  expect(await world.requestReadiness()).toEqual(notReady);
  await world.passTime(120_000);
  const pauses = world.events('grpc-bootstrap.failed').map(({ pauseMs }) => pauseMs);
  expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  expect(await world.requestReadiness()).toEqual(notReady);
  world.grpcBootstrapResult = undefined;
  await world.passTime(30_000);
  expect(await world.requestReadiness()).toEqual(readyResponse);
});

test('a write of the bootstrap file that hangs is retried after 10 s', async () => {
  const world = await createStartedWorld(proxylessSettings, { grpcBootstrapResult: 'hangs' });
  await world.passTime(10_000);
  expect(world.events('grpc-bootstrap.failed')).toEqual([
    {
      ...{ type: 'grpc-bootstrap.failed', pauseMs: 500 },
      reason: 'gRPC bootstrap file not written within 10000 ms',
    },
  ]);
  world.grpcBootstrapResult = undefined;
  await world.passTime(500);
  expect(await world.requestReadiness()).toEqual(readyResponse);
});

test('an Envoy next to proxyless programs does not make the workload ready without the file', async () => {
  const world = await AgentWorld.startServing({ ...withCertificates, runsEnvoy: true });
  expect(await world.requestReadiness()).toEqual(notReady);
  world.reportOutput({ type: 'output.written' });
  await world.settle();
  expect(await world.requestReadiness()).toEqual(readyResponse);
});

test('a stopping agent is not ready, even if the file exists', async () => {
  const world = await createStartedWorld(withCertificates);
  world.signal('SIGTERM');
  await world.settle();
  expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
  expect(world.grpcBootstrapWrites).toBe(0);
});
