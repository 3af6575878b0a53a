/** The control plane's webhooks, whose chart opens the port (machines/discovery/webhooks/webhook-server.machine.ts). */
import { expect, it } from 'vitest';
import { DiscoveryWorld } from '../simulation/discovery-world.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

const port = 'webhook-server/port';

eachWorldFollowsTheDiagrams(['webhook-server'], ['port']);

const countStarts = (world: DiscoveryWorld): number =>
  world.records.filter((record) => record.kind === 'spawn' && record.actor === port).length;

it('the webhook port is not opened if the control plane serves no webhooks', async () => {
  const world = new DiscoveryWorld();
  await world.settle();
  expect(countStarts(world)).toBe(0);
});

it('the webhook port is retried after a delay while it is in use, and proxies are served', async () => {
  const world = new DiscoveryWorld({ servesWebhooks: true });
  await world.settle();
  world.sendFrom(port, { type: 'port.closed', reason: ':15017: in use' });
  await world.passTime(499);
  expect(countStarts(world)).toBe(1);
  await world.passTime(1);
  expect(countStarts(world)).toBe(2);
  world.sendFrom(port, { type: 'port.listening', address: ':15017' });
  await world.settle();
  expect(world.events('webhooks.failed')).toMatchObject([{ reason: ':15017: in use' }]);
  expect(world.events('webhooks.listening')).toMatchObject([{ address: ':15017' }]);
  expect(world.state()).toBe('active.operating.serving');
});
