/** Log lines of a mesh: no warning without an error, one error for each invalid file, and the reviewed lines (test/transcripts). */

import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { replaceFiles } from '../certs/certificate-directory.ts';
import { eventually } from '../harness/eventually.ts';
import { linesOf, loggedLine } from '../harness/logged-line.ts';
import { type AgentProgram, type ContainedSidecar, Mesh } from '../harness/mesh.ts';
import type { Program } from '../harness/program.ts';
import { expectTranscript, type ProgramOutput, problemLines } from '../harness/transcript.ts';

let mesh: Mesh;
let sidecar: ContainedSidecar;
/** Number of lines that each program had logged before the current scene. */
const seenLineCounts = new Map<Program, number>();

beforeAll(async () => {
  mesh = await Mesh.create({
    ...{ mutualTls: true, delta: true, drainMs: 1_000, parentShutdownMs: 2_000 },
    agentArgs: ['--log_as_json'],
  });
});

afterAll(() => mesh?.stop());

/** Envoy logs this line if the next agent needs more than 10 s, which happens only on a busy machine. */
const slowTakeover = /gRPC config stream to xds-grpc closed since \d+s ago/;

/** Lines that were logged since the last scene ended. */
function outputSince(otherAgents: Readonly<Record<string, AgentProgram>> = {}): ProgramOutput[] {
  const programs = { 'control plane': mesh.discovery!, gateway: mesh.gateway!, sidecar, ...otherAgents };
  return Object.entries(programs).map(([name, { program }]) => {
    const lines = linesSince(program).filter((line) => !slowTakeover.test(line));
    seenLineCounts.set(program, program.lines.length);
    return { program: name, lines };
  });
}

const linesSince = (program: Program): string[] => program.lines.slice(seenLineCounts.get(program) ?? 0);

/** @param shell output of the launcher's shell about a killed child */
function expectHealthy(scene: string, shell: readonly string[] = []): void {
  const outputs = outputSince();
  expect(problemLines(outputs)).toEqual(shell);
  expectTranscript(scene, outputs);
}

const isLogged = (program: Program, message: RegExp): boolean => linesSince(program).some((line) => message.test(line));

test('no warning is logged when a mesh starts', async () => {
  await Promise.all([mesh.startSamples(), mesh.startDiscovery(['--log_as_json'])]);
  sidecar = await mesh.startContainedSidecar({ LIVE_RESTORE: 'true' });
  await Promise.all([mesh.waitForAgent(mesh.startGateway()), mesh.waitForAgent(sidecar)]);
  await Promise.all([mesh.httpTarget, mesh.sidecarTarget].map((target) => mesh.waitForResponse(target)));
  const { httpPort, monitoringPort } = mesh.discovery!;
  const proxies = (await (await fetch(`http://127.0.0.1:${httpPort}/debug/syncz`)).json()) as Record<string, string>[];
  expect(proxies.map(({ proxy_version }) => proxy_version)).toEqual(['0.1.0', '0.1.0']);
  const metrics = await (await fetch(`http://127.0.0.1:${monitoringPort}/metrics`)).text();
  expect(metrics).toMatch(/^pilot_xds\{version="0\.1\.0"\} 2$/m);
  expectHealthy('start');
});

/** Renews the watched files, and waits until the epoch with the new certificate has replaced its parent. */
async function renewWatchedFiles(epoch: number): Promise<void> {
  const gateway = mesh.gateway!;
  mesh.renewCertificate();
  await eventually('the next epoch serves', () =>
    isLogged(gateway.program, loggedLine('restart.ended.live', { epoch: `epoch-${epoch}` })),
  );
  await eventually('its parent has ended', () => mesh.envoysOf(gateway).length === 1);
  await eventually('its end is logged', () =>
    isLogged(gateway.program, loggedLine('state.changed', { actor: `epoch-${epoch - 1}`, to: 'exited' })),
  );
}

test('no warning is logged during a hot restart', async () => {
  await renewWatchedFiles(1);
  expectHealthy('hot-restart');
});

test('no warning is logged when watched certificate files or a workload certificate are rotated', async () => {
  const env = { SECRET_TTL: '60s', SECRET_GRACE_PERIOD_RATIO: '0.95', SECRET_GRACE_PERIOD_RATIO_JITTER: '0.005' };
  const workload = await mesh.startExtraAgent([], env);
  await mesh.waitForAgent(workload);
  const identities = (): number => linesOf(linesSince(workload.program), 'secret.obtained', { name: 'default' }).length;
  await eventually('it has an identity', () => identities() > 0);
  outputSince({ workload });
  await renewWatchedFiles(2);
  await eventually('its identity is renewed', () => identities() > 0);
  const outputs = outputSince({ workload });
  await workload.program.stop();
  outputSince();
  expect(problemLines(outputs)).toEqual([]);
  expectTranscript('certificate-rotation', outputs);
});

/** Events of the warnings and errors of a program in this scene. */
const troubleEvents = (program: Program): string[] =>
  problemLines([{ program: '', lines: linesSince(program) }]).map((line) => JSON.parse(line.slice(2)).event);

test('an invalid object and an invalid certificate file are logged as one error each, and so is their repair', async () => {
  const [controlPlane, gateway] = [mesh.discovery!.program, mesh.gateway!.program];
  const validText = mesh.directory.read('routes.yaml');
  mesh.directory.edit('routes.yaml', (text) => text.replace('weight: 10', 'weight: ten'));
  await eventually('the object is rejected', () => isLogged(controlPlane, loggedLine('object.rejected')));
  mesh.directory.write('routes.yaml', validText);
  await eventually('the object is valid again', () => isLogged(controlPlane, loggedLine('config.recovered')));
  replaceFiles(mesh.certificates.directory, { 'tls.crt': 'garbage' });
  await eventually('the certificate is rejected', () => isLogged(gateway, loggedLine('config.rejected')));
  rmSync(mesh.certificates.directory, { recursive: true });
  await renewWatchedFiles(3);
  expect(troubleEvents(controlPlane)).toEqual(['object.rejected']);
  // Envoy receives the secret from the control plane; the files belong to its initial configuration.
  expect(linesOf(linesSince(gateway), 'config.rejected')).toHaveLength(1);
  expect(new Set(troubleEvents(gateway))).toEqual(new Set(['secret.lacking', 'config.rejected']));
  expectTranscript('bad-files', outputSince());
});

test('one message is logged for a bootstrap override that Envoy rejects, and the agent exits', async () => {
  mesh.directory.write('override.txt', 'admin:\n  profile_pathh: x\n');
  const env = { ISTIO_BOOTSTRAP_OVERRIDE: mesh.directory.file('override.txt') };
  const workload = await mesh.startExtraAgent([], env);
  expect(await workload.program.exited, workload.program.lines.join('\n')).toMatchObject({ code: 255 });
  const outputs = outputSince({ workload }).filter(({ program }) => program === 'workload');
  expect(problemLines(outputs).filter((line) => line.includes('override'))).toHaveLength(1);
  expectTranscript('rejected-override', outputs);
});

const agents = (): number[] => sidecar.container.agents();

test('no warning is logged when a newer agent takes over from a running one', async () => {
  const [previousAgent] = agents();
  sidecar.container.signal('SIGUSR2');
  await eventually('the newer agent is alone', () => agents().length === 1 && agents()[0] !== previousAgent);
  await mesh.waitForAgent(sidecar);
  await eventually('Envoy is connected again', () => isLogged(mesh.discovery!.program, loggedLine('client.connected')));
  await mesh.waitForResponse(mesh.sidecarTarget);
  expectHealthy('hand-over');
});

test('no warning is logged when an agent takes over from a killed one', async () => {
  const [previousAgent] = agents();
  process.kill(previousAgent!, 'SIGKILL');
  await eventually('the next agent is alone', () => agents().length === 1 && agents()[0] !== previousAgent);
  await mesh.waitForAgent(sidecar);
  await eventually('Envoy is connected again', () => isLogged(mesh.discovery!.program, loggedLine('client.connected')));
  await mesh.waitForResponse(mesh.sidecarTarget);
  expectHealthy('takeover', ['sidecar: Killed']);
});

test('no warning is logged during a drain and a stop', async () => {
  await fetch(`http://127.0.0.1:${mesh.gateway!.statusPort}/drain`, { method: 'POST' });
  await eventually('Envoy drains', () => isLogged(mesh.gateway!.program, loggedLine('drain.ordered')));
  sidecar.container.signal('SIGTERM');
  await Promise.all([sidecar.container.ended(), mesh.gateway!.program.stop()]);
  await mesh.discovery!.program.stop();
  expectHealthy('drain-and-stop');
});
