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

it('MeshState reports why services and endpoints changed, as counted by their registries', () => {
  const world = new GivenWorld([]);
  const reasons = (endpoints: readonly string[]): unknown => {
    const key = 'ServiceEntry/a/x';
    world.directory.snapshot = world.directory.snapshot.edited(new Map([[key, entry(endpoints)]]));
    return world.state.computeServices([{ key, event: 'update' }]).reasons;
  };
  // The service and its first endpoints are both new.
  expect(reasons(['10.0.0.1'])).toEqual({ service: 2 });
  expect(reasons(['10.0.0.1', '10.0.0.2'])).toEqual({ endpoint: 1 });
  expect(reasons(['10.0.0.1', '10.0.0.2'])).toEqual({});
});

it('MeshState names services in the next context if their computation was cancelled', async () => {
  const world = new GivenWorld([]);
  const changes: (readonly string[])[] = [];
  world.state.onPublished(({ changed }) => changes.push([...changed]));
  const key = 'ServiceEntry/a/x';
  world.directory.snapshot = world.directory.snapshot.edited(new Map([[key, entry(['10.0.0.1'])]]));
  const cancelled = world.state.computeServicesInTurns([{ key, event: 'add' }], undefined, AbortSignal.abort());
  await expect(cancelled).rejects.toThrow();
  world.state.publishContext({ forced: false, changed: ['VirtualService/a/other'] });
  expect(changes).toEqual([expect.arrayContaining(['ServiceEntry/a/x.test'])]);
});

it('MeshState builds no context before the computation after the running one', async () => {
  const world = new GivenWorld([]);
  const key = 'ServiceEntry/a/x';
  const first = world.state.computeServicesInTurns([]);
  // Like the chart, which starts the next computation afterwards.
  const next = first.then(() => world.state.computeServicesInTurns([{ key, event: 'add' }]));
  const published = world.state.publishContextInTurns({ forced: false, changed: [] });
  world.directory.snapshot = world.directory.snapshot.edited(new Map([[key, entry(['10.0.0.1'])]]));
  const { services } = await published;
  await next;
  expect(services.map(({ hostname }) => hostname)).toEqual(['x.test']);
});
