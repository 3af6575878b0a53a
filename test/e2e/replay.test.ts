import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatReplayTest } from '../../src/debugger/replay/format-test.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import type { TraceHeader, TraceLine, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { eventually } from '../harness/eventually.ts';
import { Mesh } from '../harness/mesh.ts';
import { probe } from '../harness/probe.ts';
import { Program } from '../harness/program.ts';

let mesh: Mesh;

/** All activities of the programs: starts, a hot restart, a crash, a push, the shutdown. */
beforeAll(async () => {
  mesh = await Mesh.create({ drainMs: 1_000, parentShutdownMs: 2_000 });
  // Also records the periodic messages of the xDS streams.
  await Promise.all([mesh.startSamples(), mesh.startDiscovery(['--traceLevel', 'full'])]);
  const gateway = mesh.startGateway(['--traceLevel', 'full']);
  await Promise.all([gateway, mesh.startSidecar()].map((agent) => mesh.waitForAgent(agent)));
  await mesh.waitForResponse(mesh.httpsTarget);
  const serial = mesh.renewCertificate();
  await eventually('the new certificate is served', async () => {
    return (await probe(mesh.httpsTarget)).serialNumber === serial;
  });
  const envoy = await eventually('the parent has left', () => {
    const envoys = mesh.envoysOf(gateway);
    return envoys.length === 1 ? envoys[0] : undefined;
  });
  process.kill(envoy.pid, 'SIGKILL');
  await eventually('the gateway answers again', async () => (await probe(mesh.httpTarget)).outcome.ok);
  mesh.directory.setWeights({ v1: 0, v2: 100 });
  await eventually('v2 is asked', async () => {
    const { outcome } = await probe(mesh.httpTarget);
    return outcome.ok && outcome.version === 'v2';
  });
  gateway.program.signal('SIGHUP');
  await eventually('an ordered restart', () => mesh.envoysOf(gateway).some(({ epoch }) => epoch > 0));
  await mesh.stop({ keepDirectory: true });
});

afterAll(() => mesh.stop());

async function chartpilot(...args: string[]): Promise<{ code: number | null; output: string }> {
  const program = Program.start('chartpilot', { args, env: process.env, cwd: packageRoot() });
  const { code } = await program.exited;
  return { code, output: program.output() };
}

test('traces of agents and control plane with real Envoys replay without a difference', async () => {
  const programs = mesh.traceFiles.map((file) => {
    return (JSON.parse(readFileSync(file, 'utf8').split('\n', 1)[0]!) as TraceHeader).program;
  });
  expect(programs.sort()).toEqual(['pilot-agent', 'pilot-agent', 'pilot-discovery']);
  const { code, output } = await chartpilot('replay', ...mesh.traceFiles);
  expect(code, output).toBe(0);
  expect(output.match(/compared, no difference/g)).toHaveLength(3);
  // Replays every record except lines that Envoy wrote.
  for (const file of mesh.traceFiles) {
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n').slice(1);
    const recordCount = lines.filter((line) => (JSON.parse(line) as { kind: string }).kind !== 'log').length;
    expect(output).toContain(`${lines.length} records: ${recordCount} compared, no difference`);
  }
});

test('a test generated from a recorded trace passes with the installed package', async () => {
  const lines = readFileSync(mesh.gateway!.traceFile, 'utf8').trimEnd().split('\n');
  const [header, ...records] = lines.map((line) => JSON.parse(line) as TraceLine);
  const live = (records as TraceRecord[]).find(
    (record) => record.kind === 'event' && record.event.type === 'epoch.live' && record.from === 'epoch-1',
  );
  const { source, trace } = formatReplayTest({
    header: header as TraceHeader,
    records: records as TraceRecord[],
    name: 'epoch 1 goes live',
    upTo: live!.seq,
  });
  const folder = join(mesh.root, 'copied');
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(join(packageRoot(), 'node_modules/vitest'), join(folder, 'node_modules/vitest'));
  symlinkSync(packageRoot(), join(folder, 'node_modules/chartpilot'));
  writeFileSync(join(folder, 'copied.test.js'), source);
  if (trace !== undefined) writeFileSync(join(folder, trace.name), trace.text);
  const vitest = join(packageRoot(), 'node_modules/vitest/vitest.mjs');
  const program = Program.run('vitest', process.execPath, {
    args: [vitest, 'run', '--root', folder, '--testTimeout=120000'],
    env: process.env,
    cwd: folder,
  });
  const { code } = await program.exited;
  expect(program.output()).toMatch(/Tests .*1 passed/);
  expect(code).toBe(0);
});

test('trace --merge aligns the clocks of all programs, and links each push to its delivery to Envoy and to the ACK', async () => {
  const mergedFile = join(mesh.root, 'merged.trace');
  const { code, output } = await chartpilot('trace', '--merge', mergedFile, ...mesh.traceFiles);
  expect(code, output).toBe(0);
  const lines = readFileSync(mergedFile, 'utf8').trimEnd().split('\n');
  const events = lines.map((line) => JSON.parse(line) as TraceRecord).filter((record) => record.kind === 'event');
  const eventsOfType = (type: string) => events.filter(({ event }) => event.type === type);
  const pushes = eventsOfType('xds.push');
  expect(pushes.length).toBeGreaterThan(8);
  expect(pushes).toHaveLength(eventsOfType('response.forwarded').length);
  const responses = eventsOfType('request.forwarded').filter(({ event }) => event.nonce !== '');
  // Messages in transit when an Envoy was killed, or at the end, are missing.
  expect(responses.length - eventsOfType('xds.answer').length).toBeLessThan(3);
  expect(responses.length).toBeGreaterThan(8);
  // Messages in both directions determine the offset of the gateway's clock, in milliseconds.
  const [, plusMinus] = /^gateway: .*\(± (\d+) ms, from \d\d+ messages\)$/m.exec(output) ?? [];
  expect(Number(plusMinus)).toBeLessThan(100);
  // First pushes of new connections have no order.
  const weightPushes = eventsOfType('connection.push').flatMap(({ seq: orderedAt, to }) => {
    return pushes.filter(({ seq, from }) => seq > orderedAt && from === `${to}/stream`).slice(0, 1);
  });
  const whyOutput = await chartpilot('trace', mergedFile, '--why', String(weightPushes.at(-1)!.seq));
  expect(whyOutput.output).toMatch(/← pilot-discovery:ads-connection-\d+\/stream → .*response\.sent/);
  // Weights changed in a file: the output names the file and the time.
  expect(whyOutput.output).toMatch(
    /connection\.push[\s\S]*push\.request .*VirtualService\/demo\/sample[\s\S]*source\.changed/,
  );
});
