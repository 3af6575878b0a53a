/**
 * Whether the workload can serve, as its chart probes it (machines/agent/xds/workload-health.machine.ts), and which connections are notified, in
 * virtual time.
 */
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { ProbeTimes } from '../../machines/agent/xds/workload-health.machine.ts';
import { checkTrace } from '../../src/debugger/check/check.ts';
import { formatReport } from '../../src/debugger/check/check-report-text.ts';
import { loadDiagrams } from '../../src/debugger/diagram/load.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { XdsWorld } from '../simulation/xds-world.ts';

const diagrams = loadDiagrams(join(packageRoot(), 'machines/agent/sequences')).filter(({ file }) =>
  /\/(xds(-stream)?|workload-health)\.mmd$/.test(file),
);

afterEach(() => {
  for (const world of XdsWorld.created.splice(0)) {
    expect(world.failed).toBeUndefined();
    expect(world.records.filter(({ kind }) => kind === 'unexpected')).toEqual([]);
    const report = checkTrace(diagrams, world.records);
    if (report.departures.length > 0) expect.fail(formatReport(report, diagrams));
  }
});

const times: ProbeTimes = {
  ...{ initialDelayMs: 3_000, periodMs: 10_000, timeoutMs: 1_000 },
  ...{ successThreshold: 1, failureThreshold: 1 },
};

function createWorld(probe: Partial<ProbeTimes> = {}, workload: XdsWorld['workload'] = () => ''): XdsWorld {
  const world = new XdsWorld({ socket: '/run/XDS', hasSecrets: true, probe: { ...times, ...probe }, proxyless: false });
  world.workload = workload;
  world.start();
  return world;
}

/** Passes time in steps of 1 s, with responses in between. */
async function pass(world: XdsWorld, seconds: number): Promise<void> {
  for (let i = 0; i < seconds; i++) {
    world.pass(1_000);
    for (let tick = 0; tick < 10; tick++) await Promise.resolve();
  }
}

const reportedHealth = (world: XdsWorld): string[] =>
  world.records.flatMap((record) =>
    record.kind === 'event' && record.event.type === 'health.changed'
      ? [record.event.healthy === true ? 'healthy' : String(record.event.message)]
      : [],
  );

describe('a probed workload', () => {
  it('is probed directly after its initial delay, and then once per period', async () => {
    const world = createWorld();
    const startMs = world.clock.now();
    await pass(world, 30);
    expect(world.probes.map((at) => at - startMs)).toEqual([3_000, 13_000, 23_000]);
  });

  it('is not probed if no probe is configured', async () => {
    const world = new XdsWorld();
    world.start();
    await pass(world, 30);
    expect(world.probes).toEqual([]);
  });

  it('is reported as unhealthy after the timeout if it does not respond', async () => {
    const world = createWorld({}, () => new Promise<string>(() => {}));
    await pass(world, 60);
    expect(reportedHealth(world)).toEqual(['no response in time']);
    expect(world.probes.length).toBeGreaterThan(2);
  });
});

describe('workload health', () => {
  it('is reported only when it changes', async () => {
    const results = ['', '', 'refused', 'reset', 'refused', '', ''];
    const world = createWorld({ periodMs: 1_000 }, () => results.shift() ?? '');
    await pass(world, 20);
    expect(reportedHealth(world)).toEqual(['healthy', 'refused', 'healthy']);
  });

  it('changes after the configured number of consecutive equal results', async () => {
    const results = ['', 'one', '', 'one', 'two', '', 'one', '', ''];
    const world = createWorld(
      { periodMs: 1_000, successThreshold: 2, failureThreshold: 2 },
      () => results.shift() ?? '',
    );
    await pass(world, 6);
    expect(reportedHealth(world)).toEqual([]);
    await pass(world, 2);
    expect(reportedHealth(world)).toEqual(['two']);
    await pass(world, 12);
    expect(reportedHealth(world)).toEqual(['two', 'healthy']);
  });
});

describe('the control plane', () => {
  it('is notified over each existing stream and over each new one', async () => {
    let reason = '';
    const world = createWorld({ periodMs: 1_000 }, () => reason);
    const earlyStream = world.opens('0@7');
    world.respond(earlyStream);
    await pass(world, 5);
    const lateStream = world.opens('1@8');
    world.respond(lateStream);
    reason = 'refused';
    await pass(world, 5);
    expect(world.of(earlyStream).healths).toEqual([undefined, true, false]);
    expect(world.of(lateStream).healths).toEqual([true, false]);
  });

  it('is notified of the current state over the next connection after it was disconnected', async () => {
    let reason = '';
    const world = createWorld({ periodMs: 1_000 }, () => reason);
    const stream = world.opens();
    await pass(world, 5);
    world.upstream(stream, { type: 'upstream.unreachable', reason: 'ECONNREFUSED', chance: 1 });
    reason = 'refused';
    await pass(world, 60);
    expect(world.of(stream).healths.at(-1)).toBe(false);
    expect(world.of(stream).healths.length).toBeGreaterThan(1);
  });
});
