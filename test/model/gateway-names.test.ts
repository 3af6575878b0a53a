/** Host names of networks' gateways, which the statecharts keep resolved (machines/discovery/registry/gateway-name{,s}.machine.ts). */
import { expect, it } from 'vitest';
import type { NameResolution } from '../../machines/discovery/registry/gateway-name.machine.ts';
import { DiscoveryWorld } from '../simulation/discovery-world.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const servingState = 'active.operating.serving';

const resolvedTo = (timeToLiveMs: number, ...addresses: string[]): NameResolution => ({
  outcome: 'resolved',
  addresses,
  timeToLiveMs,
});
const failedResolution: NameResolution = { outcome: 'failed', reason: 'SERVFAIL' };

eachWorldFollowsTheDiagrams(['gateway-names', 'gateway-name'], ['resolving', 'names']);

/** The seconds at which a name was resolved, relative to the first. */
function resolvedAt(world: DiscoveryWorld, hostname: string): number[] {
  const times = world.nameRequests.flatMap((one) => (one.hostname === hostname ? [one.at] : []));
  return times.map((time) => (time - times[0]!) / secondMs);
}

/** The results for names, as reported to the chart of all names. */
function reportedEvents(world: DiscoveryWorld): string[] {
  return world.records.flatMap((record) =>
    record.kind === 'event' && record.to === 'gateway-names' && record.event.type.startsWith('gateway-name.')
      ? [`${record.from} ${record.event.type}`]
      : [],
  );
}

const createWorld = async (script: Partial<DiscoveryWorld>): Promise<DiscoveryWorld> => {
  const world = new DiscoveryWorld({}, { gatewayNames: ['gw'], ...script });
  await world.settle();
  expect(world.state()).toBe(servingState);
  return world;
};

it('a name is resolved again after its TTL, which is at least 30 s', async () => {
  const world = await createWorld({ dns: { gw: resolvedTo(secondMs, '1.1.1.1') } });
  await world.passTime(29 * secondMs);
  world.dns.gw = resolvedTo(90 * secondMs, '1.1.1.1');
  await world.passTime(32 * secondMs);
  world.dns.gw = resolvedTo(0, '2.2.2.2');
  await world.passTime(60 * secondMs);
  expect(resolvedAt(world, 'gw')).toEqual([0, 30, 120]);
  expect(world.adoptedNames).toEqual(['gw 1.1.1.1', 'gw 2.2.2.2']);
  expect(reportedEvents(world)).toEqual([
    'gateway-name-1 gateway-name.resolved',
    'gateway-name-1 gateway-name.resolved',
  ]);
});

it('a TTL of years is limited to 1 h', async () => {
  const world = await createWorld({ dns: { gw: resolvedTo((2 ** 31 - 1) * secondMs, '1.1.1.1') } });
  await world.passTime(61 * minuteMs);
  expect(resolvedAt(world, 'gw')).toEqual([0, 3_600]);
});

it('a name that does not resolve is retried with increasing delays of up to 1 min', async () => {
  const world = await createWorld({ dns: { gw: failedResolution } });
  await world.passTime(5 * minuteMs);
  expect(resolvedAt(world, 'gw')).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
  expect(reportedEvents(world)).toHaveLength(10);
  expect(world.adoptedNames).toEqual([]);
});

it('a name that no longer resolves keeps its addresses, and gets new ones when DNS recovers', async () => {
  const world = await createWorld({ dns: { gw: resolvedTo(0, '1.1.1.1') } });
  world.dns.gw = failedResolution;
  await world.passTime(10 * minuteMs);
  expect(world.adoptedNames).toEqual(['gw 1.1.1.1']);
  world.dns.gw = resolvedTo(0, '2.2.2.2');
  await world.passTime(minuteMs);
  expect(world.adoptedNames).toEqual(['gw 1.1.1.1', 'gw 2.2.2.2']);
  world.dns.gw = failedResolution;
  const resolvedBefore = world.nameRequests.length;
  await world.passTime(70 * secondMs);
  const times = resolvedAt(world, 'gw').slice(resolvedBefore);
  // The back-off restarts.
  expect(times.slice(1, 4).map((time, index) => time - times[index]!)).toEqual([1, 2, 4]);
});

it('a DNS query without a response times out after 15 s and is retried', async () => {
  const world = await createWorld({ dns: {} });
  await world.passTime(34 * secondMs);
  expect(resolvedAt(world, 'gw')).toEqual([0, 16, 33]);
  expect(reportedEvents(world)).toEqual(['gateway-name-1 gateway-name.failed', 'gateway-name-1 gateway-name.failed']);
  world.dns.gw = resolvedTo(0, '1.1.1.1');
  await world.passTime(30 * secondMs);
  expect(world.adoptedNames).toEqual(['gw 1.1.1.1']);
});

it('a removed name is no longer resolved, and an added name is resolved immediately', async () => {
  const world = await createWorld({
    gatewayNames: ['gw', 'gw'],
    dns: { gw: resolvedTo(0, '1.1.1.1'), other: resolvedTo(0, '3.3.3.3') },
  });
  await world.setGatewayNames(['other']);
  await world.passTime(10 * minuteMs);
  expect(resolvedAt(world, 'gw')).toEqual([0]);
  expect(resolvedAt(world, 'other')).toHaveLength(21);
  expect(world.adoptedNames).toEqual(['gw 1.1.1.1', 'other 3.3.3.3']);
});

it('an exception in the resolver is handled like other failures, and the control plane keeps serving', async () => {
  const world = await createWorld({ dns: { gw: new Error('a bug') } });
  await world.passTime(4 * secondMs);
  expect(resolvedAt(world, 'gw')).toEqual([0, 1, 3]);
  expect(world.state()).toBe(servingState);
});

it('an exception in the list of names is handled like other failures', async () => {
  const world = await createWorld({ gatewayNames: new Error('a bug') });
  await world.passTime(minuteMs);
  expect(world.state()).toBe(servingState);
});
