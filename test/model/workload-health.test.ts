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
  for (const world of XdsWorld.instances.splice(0)) {
    expect(world.failure).toBeUndefined();
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
async function passSeconds(world: XdsWorld, seconds: number): Promise<void> {
  for (let i = 0; i < seconds; i++) {
    world.passTime(1_000);
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
    await passSeconds(world, 30);
    expect(world.probeTimes.map((at) => at - startMs)).toEqual([3_000, 13_000, 23_000]);
  });

  it('is not probed if no probe is configured', async () => {
    const world = new XdsWorld();
    world.start();
    await passSeconds(world, 30);
    expect(world.probeTimes).toEqual([]);
  });

  it('is reported as unhealthy after the timeout if it does not respond', async () => {
    const world = createWorld({}, () => new Promise<string>(() => {}));
    await passSeconds(world, 60);
    expect(reportedHealth(world)).toEqual(['no response in time']);
    expect(world.probeTimes.length).toBeGreaterThan(2);
  });
});

describe('workload health', () => {
  it('is reported only when it changes', async () => {
    const results = ['', '', 'refused', 'reset', 'refused', '', ''];
    const world = createWorld({ periodMs: 1_000 }, () => results.shift() ?? '');
    await passSeconds(world, 20);
    expect(reportedHealth(world)).toEqual(['healthy', 'refused', 'healthy']);
  });

  it('changes after the configured number of consecutive equal results', async () => {
    const results = ['', 'one', '', 'one', 'two', '', 'one', '', ''];
    const world = createWorld(
      { periodMs: 1_000, successThreshold: 2, failureThreshold: 2 },
      () => results.shift() ?? '',
    );
    await passSeconds(world, 6);
    expect(reportedHealth(world)).toEqual([]);
    await passSeconds(world, 2);
    expect(reportedHealth(world)).toEqual(['two']);
    await passSeconds(world, 12);
    expect(reportedHealth(world)).toEqual(['two', 'healthy']);
  });
});

describe('the control plane', () => {
  it('is notified over each existing stream and over each new one', async () => {
    let reason = '';
    const world = createWorld({ periodMs: 1_000 }, () => reason);
    const earlyStream = world.openStream('0@7');
    world.respond(earlyStream);
    await passSeconds(world, 5);
    const lateStream = world.openStream('1@8');
    world.respond(lateStream);
    reason = 'refused';
    await passSeconds(world, 5);
    expect(world.streamOf(earlyStream).healthReports).toEqual([undefined, true, false]);
    expect(world.streamOf(lateStream).healthReports).toEqual([true, false]);
  });

  it('is notified of the current state over the next connection after it was disconnected', async () => {
    let reason = '';
    const world = createWorld({ periodMs: 1_000 }, () => reason);
    const stream = world.openStream();
    await passSeconds(world, 5);
    world.upstream(stream, { type: 'upstream.unreachable', reason: 'ECONNREFUSED', chance: 1 });
    reason = 'refused';
    await passSeconds(world, 60);
    expect(world.streamOf(stream).healthReports.at(-1)).toBe(false);
    expect(world.streamOf(stream).healthReports.length).toBeGreaterThan(1);
  });
});
