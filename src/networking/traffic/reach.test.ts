import { expect, it } from 'vitest';
import { unboundedMemory } from '../../../test/fixtures/given-memory.ts';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { buildListeners, buildRoutes } from '../index.ts';
import { endpointProjection, routeProjection } from '../projection.ts';
import { proxyReachOf } from './reach.ts';

const rule = (name: string, extraSpec = ''): string => `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: ${name} }
spec: { host: a.test${extraSpec} }
---`;

const { context } = givenMesh(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: a }
spec: { hosts: [a.test], resolution: NONE, ports: [{ number: 80, name: http, protocol: HTTP }] }
---${rule('all')}${rule('chosen', ', workloadSelector: { matchLabels: { app: web } }')}`);

it.each(['sidecar', 'router'] as const)(
  'a %s reaches services according to the rules that select its workload',
  (type) => {
    const ruleOf = (labels: Record<string, string>): string | undefined => {
      const reach = proxyReachOf(givenShape({ type, labels }, context), context);
      return reach.destinationRuleFor(reach.serviceByHostname('a.test')!)?.config.name;
    };
    expect([ruleOf({ app: 'web' }), ruleOf({ app: 'db' }), ruleOf({})]).toEqual(['chosen', 'all', 'all']);
  },
);

it('workloads share no list if different rules select them, but labels without a matching rule have no effect', () => {
  const [web, other, db] = [{ app: 'web' }, { app: 'web', pod: '2' }, { app: 'db' }].map((labels) =>
    givenShape({ labels }, context),
  );
  for (const projection of [endpointProjection, routeProjection]) {
    const [webProjection, otherProjection, dbProjection] = [web!, other!, db!].map((shape) =>
      projection(shape, context),
    );
    expect(webProjection).toBe(otherProjection);
    expect(webProjection).not.toBe(dbProjection);
  }
});

it('requests and connections use the rules that select the workload, regardless of the order of workloads', () => {
  const selectorPolicy = `, workloadSelector: { matchLabels: { app: web } }, trafficPolicy: {
    loadBalancer: { consistentHash: { httpHeaderName: x-user } }, connectionPool: { tcp: { idleTimeout: 77s } } }`;
  const mesh = givenMesh(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: a }
spec:
  hosts: [a.test]
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP }, { number: 90, name: tcp, protocol: TCP }]
---${rule('all')}${rule('chosen', selectorPolicy)}`).context;
  const cache = unboundedMemory();
  const timeouts = (app: string): boolean[] => {
    const shape = givenShape({ labels: { app } }, mesh);
    const routes = buildRoutes(shape, mesh, ['80'], cache);
    const listeners = buildListeners(shape, mesh, cache).filter(({ name }) => name === '0.0.0.0_90');
    const text = (all: readonly { bytes: Uint8Array }[]): string =>
      Buffer.concat(all.map(({ bytes }) => bytes)).toString('latin1');
    // The wire format of a Duration of 77 seconds.
    return [text(routes).includes('x-user'), text(listeners).includes('\x02\x08\x4d')];
  };
  expect([timeouts('web'), timeouts('db'), timeouts('web')]).toEqual([
    [true, true],
    [false, false],
    [true, true],
  ]);
});
