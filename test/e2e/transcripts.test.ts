/** What a mesh logs while nothing is wrong: no warning, and the lines that were reviewed (test/transcripts). */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { loggedLine } from '../harness/logged-line.ts';
import { type ContainedSidecar, Mesh } from '../harness/mesh.ts';
import type { Program } from '../harness/program.ts';
import { expectTranscript, type Said, troubles } from '../harness/transcript.ts';

let mesh: Mesh;
let sidecar: ContainedSidecar;
/** Lines of each program that an earlier scene had. */
const seen = new Map<Program, number>();

beforeAll(async () => {
  mesh = await Mesh.create({
    ...{ mutualTls: true, delta: true, drainMs: 1_000, parentShutdownMs: 2_000 },
    agentArgs: ['--log_as_json'],
  });
});

afterAll(() => mesh?.stop());

/** What has been logged since the last scene ended. */
function saidSince(): Said[] {
  const programs = { 'control plane': mesh.discovery!, gateway: mesh.gateway!, sidecar };
  return Object.entries(programs).map(([name, { program }]) => {
    const lines = program.lines.slice(seen.get(program) ?? 0);
    seen.set(program, program.lines.length);
    return { program: name, lines };
  });
}

/** @param shell what the shell of the launcher says itself of a child that is killed */
function expectHealthy(scene: string, shell: readonly string[] = []): void {
  const said = saidSince();
  expect(troubles(said)).toEqual(shell);
  expectTranscript(scene, said);
}

/** Whether a program has logged it in this scene. */
const logged = (program: Program, message: RegExp): boolean =>
  program.lines.slice(seen.get(program) ?? 0).some((line) => message.test(line));

test('a start logs no warning', async () => {
  await Promise.all([mesh.startSamples(), mesh.startDiscovery(['--log_as_json'])]);
  sidecar = await mesh.startContainedSidecar({ LIVE_RESTORE: 'true' });
  await Promise.all([mesh.waitForAgent(mesh.startGateway()), mesh.waitForAgent(sidecar)]);
  await Promise.all([mesh.httpTarget, mesh.sidecarTarget].map((target) => mesh.waitForAnswer(target)));
  const { httpPort, monitoringPort } = mesh.discovery!;
  const proxies = (await (await fetch(`http://127.0.0.1:${httpPort}/debug/syncz`)).json()) as Record<string, string>[];
  expect(proxies.map(({ proxy_version }) => proxy_version)).toEqual(['0.1.0', '0.1.0']);
  const metrics = await (await fetch(`http://127.0.0.1:${monitoringPort}/metrics`)).text();
  expect(metrics).toMatch(/^pilot_xds\{version="0\.1\.0"\} 2$/m);
  expectHealthy('start');
});

test('a hot restart logs no warning', async () => {
  const gateway = mesh.gateway!;
  mesh.renewCertificate();
  await eventually('the next epoch serves', () =>
    logged(gateway.program, loggedLine('restart.ended.live', { epoch: 'epoch-1' })),
  );
  await eventually('its parent has ended', () => mesh.envoysOf(gateway).length === 1);
  await eventually('its end is logged', () =>
    logged(gateway.program, loggedLine('state.changed', { actor: 'epoch-0', to: 'exited' })),
  );
  expectHealthy('hot-restart');
});

const agents = (): number[] => sidecar.container.agents();

test('a newer agent that takes over from a living one logs no warning', async () => {
  const [before] = agents();
  sidecar.container.signal('SIGUSR2');
  await eventually('the newer agent is alone', () => agents().length === 1 && agents()[0] !== before);
  await mesh.waitForAgent(sidecar);
  await eventually('Envoy is connected again', () => logged(mesh.discovery!.program, loggedLine('client.connected')));
  await mesh.waitForAnswer(mesh.sidecarTarget);
  expectHealthy('hand-over');
});

test('an agent that takes over from a killed one logs no warning', async () => {
  const [before] = agents();
  process.kill(before!, 'SIGKILL');
  await eventually('the next agent is alone', () => agents().length === 1 && agents()[0] !== before);
  await mesh.waitForAgent(sidecar);
  await eventually('Envoy is connected again', () => logged(mesh.discovery!.program, loggedLine('client.connected')));
  await mesh.waitForAnswer(mesh.sidecarTarget);
  expectHealthy('takeover', ['sidecar: Killed']);
});

test('a drain and a stop log no warning', async () => {
  await fetch(`http://127.0.0.1:${mesh.gateway!.statusPort}/drain`, { method: 'POST' });
  await eventually('Envoy drains', () => logged(mesh.gateway!.program, loggedLine('drain.ordered')));
  sidecar.container.signal('SIGTERM');
  await Promise.all([sidecar.container.ended(), mesh.gateway!.program.stop()]);
  await mesh.discovery!.program.stop();
  expectHealthy('drain-and-stop');
});
