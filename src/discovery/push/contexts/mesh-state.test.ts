import { expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../../test/fixtures/given-world.ts';

const entry = (endpoints: readonly string[]) =>
  givenObject('ServiceEntry', 'a', 'x', {
    hosts: ['x.test'],
    addresses: [],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    ports: [{ number: 80, name: 'p', protocol: 'HTTP' }],
    endpoints: endpoints.map((address) => ({ address })),
  });

it('MeshState counts changes by the reasons service and endpoint, and counts nothing for an unchanged object', () => {
  const world = new GivenWorld([]);
  const reasons = (endpoints: readonly string[]): unknown => {
    const key = 'ServiceEntry/a/x';
    world.directory.snapshot = world.directory.snapshot.withEdits(new Map([[key, entry(endpoints)]]));
    return world.state.computeServices([{ key, event: 'update' }]).reasons;
  };
  // The service and its first endpoints are both new.
  expect(reasons(['10.0.0.1'])).toEqual({ service: 2 });
  expect(reasons(['10.0.0.1', '10.0.0.2'])).toEqual({ endpoint: 1 });
  expect(reasons(['10.0.0.1', '10.0.0.2'])).toEqual({});
});

it('MeshState names the services of a cancelled computation in the next context', async () => {
  const world = new GivenWorld([]);
  const changes: (readonly string[])[] = [];
  world.state.onPublished(({ changedKeys }) => changes.push([...changedKeys]));
  const key = 'ServiceEntry/a/x';
  world.directory.snapshot = world.directory.snapshot.withEdits(new Map([[key, entry(['10.0.0.1'])]]));
  const cancelled = world.state.computeServicesInTurns([{ key, event: 'add' }], undefined, AbortSignal.abort());
  await expect(cancelled).rejects.toThrow();
  world.state.publishContext({ forced: false, changedKeys: ['VirtualService/a/other'] });
  expect(changes).toEqual([expect.arrayContaining(['ServiceEntry/a/x.test'])]);
});

it('MeshState waits with a context for the computation that follows the running one', async () => {
  const world = new GivenWorld([]);
  const key = 'ServiceEntry/a/x';
  const first = world.state.computeServicesInTurns([]);
  // Starts the next computation after the first one, like the chart.
  const next = first.then(() => world.state.computeServicesInTurns([{ key, event: 'add' }]));
  const publishing = world.state.publishContextInTurns({ forced: false, changedKeys: [] });
  world.directory.snapshot = world.directory.snapshot.withEdits(new Map([[key, entry(['10.0.0.1'])]]));
  const { services } = await publishing;
  await next;
  expect(services.map(({ hostname }) => hostname)).toEqual(['x.test']);
});
