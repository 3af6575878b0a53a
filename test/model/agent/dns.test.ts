/** If the workload's DNS server is enabled, its port opens before an Envoy starts, and reopens after failures. */
import { expect, test } from 'vitest';
import { AgentWorld } from '../../simulation/agent-world.ts';
import { checkEveryWorld, epochsStarted } from './scenes.ts';

checkEveryWorld();

const table = { type: 'name-table.received', names: 3, skipped: 0 } as const;
const portFailed = { type: 'dns-port.failed', reason: 'EBADF' } as const;

test('the DNS server is disabled by default', async () => {
  const world = await AgentWorld.startServing();
  expect(world.dnsOpenCount).toBe(0);
  expect(world.records.filter((record) => 'actor' in record && record.actor === 'dns')).toEqual([]);
});

test('Envoy is not started before the DNS port is open', async () => {
  const world = new AgentWorld({ dns: true });
  world.dnsResult = undefined;
  await world.passTime(4_000);
  expect(world.dnsOpenCount).toBe(1);
  expect(epochsStarted(world)).toEqual([]);
  world.sendFromDns({ type: 'dns-port.listening', addresses: ['127.0.0.1', '::1'], port: 15053 });
  await world.settle();
  expect(epochsStarted(world)).toEqual([0]);
  expect(world.events('dns.listening')).toEqual([
    { type: 'dns.listening', addresses: ['127.0.0.1', '::1'], port: 15053 },
  ]);
});

test('an unavailable DNS port ends the agent with a reason before Envoy starts', async () => {
  const world = new AgentWorld({ dns: true });
  world.dnsResult = 'failed';
  await world.settle();
  expect(world.output()).toEqual({ exitCode: 1, trouble: ['EADDRINUSE'] });
  expect(epochsStarted(world)).toEqual([]);
  expect(world.releasedBaseIds).toEqual([7, 8]);
});

test('a DNS port that neither opens nor fails within 5 s ends the agent', async () => {
  const world = new AgentWorld({ dns: true });
  world.dnsResult = undefined;
  await world.passTime(5_000);
  expect(world.output()).toEqual({ exitCode: 1, trouble: ['DNS port not open after 5000 ms'] });
});

test('a lost DNS port is reopened with delays that double up to 30 s, without affecting Envoy', async () => {
  const world = await AgentWorld.startServing({ dns: true });
  world.sendFromDns(table);
  world.dnsResult = 'failed';
  world.sendFromDns(portFailed);
  const openedTimes: number[] = [];
  for (let second = 0; second < 200; second += 0.5) {
    const openedBefore = world.dnsOpenCount;
    await world.passTime(500);
    if (world.dnsOpenCount > openedBefore) openedTimes.push(second + 0.5);
  }
  expect(openedTimes.slice(0, 8)).toEqual([0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 61.5, 91.5]);
  world.dnsResult = 'listening';
  await world.passTime(30_000);
  world.sendFromDns(table);
  world.sendFromDns(table);
  await world.settle();
  expect(epochsStarted(world)).toEqual([0]);
  expect(world.events('dns.failed')).toEqual([]);
  expect(world.events('dns.listening')).toHaveLength(2);
});

test('a DNS port that is lost after 1 min is reopened soon, and an existing table is reported before it is open', async () => {
  const world = await AgentWorld.startServing({ dns: true });
  world.dnsResult = undefined;
  world.sendFromDns(portFailed);
  await world.passTime(500);
  world.sendFromDns(table);
  await world.passTime(5_000 + 1_000);
  world.sendFromDns({ type: 'dns-port.listening', addresses: ['127.0.0.1'], port: 15053 });
  expect(world.dnsOpenCount).toBe(3);
  await world.passTime(60_000);
  world.sendFromDns(portFailed);
  await world.passTime(500);
  expect(world.dnsOpenCount).toBe(4);
});

test('the DNS server exits immediately if it is stopped while it opens the port', async () => {
  const world = new AgentWorld({ dns: true });
  world.dnsResult = undefined;
  await world.settle();
  world.signal('SIGTERM');
  await world.settle();
  expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
  expect(world.dnsOpenCount).toBe(1);
});
