import { fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { unboundedMemory } from '../../../test/fixtures/given-memory.ts';
import { givenShape } from '../../../test/fixtures/given-mesh.ts';
import { type JsonObject, nodes, PatchedMesh } from '../../../test/fixtures/given-patches.ts';
import type { VirtualHost } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { RouteConfiguration } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { buildRoutes } from '../index.ts';
import { originsOf } from '../inputs/message-origin.ts';
import { type Encodable, EnvoyResource, type ResourceOfParts } from '../messages/resource.ts';
import { buildRoutes as unpatchedRoutes } from '../routes/build.ts';
import { VirtualHostPart } from '../routes/plan/virtual-host-part.ts';
import { applyEnvoyFilters } from './index.ts';

const route = (match: string, patch: string): string =>
  `{applyTo: HTTP_ROUTE, match: {routeConfiguration: ${match}}, patch: ${patch}}`;
const host = (match: string, patch: string): string =>
  `{applyTo: VIRTUAL_HOST, match: {routeConfiguration: ${match}}, patch: ${patch}}`;
const header = '{operation: MERGE, value: {request_headers_to_add: [{header: {key: x, value: y}}]}}';
const extraRoute = (name: string): string => `{name: ${name}, match: {prefix: /}, direct_response: {status: 418}}`;

const serviceNamed = (host: string): string => `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: ${host}, namespace: shop }
spec:
  hosts: [${host}]
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP }]
  endpoints: [{ address: 10.1.0.9 }]`;

const headed = (configuration: JsonObject): readonly string[] =>
  configuration.virtualHosts.flatMap((one: JsonObject) => [
    ...(one.requestHeadersToAdd ? [one.name] : []),
    ...one.routes.flatMap((inner: JsonObject) => (inner.requestHeadersToAdd ? [`${one.name} ${inner.name}`] : [])),
  ]);
const routeNames = (configuration: JsonObject, name = 'web.test:80'): readonly string[] =>
  configuration.virtualHosts.find((one: JsonObject) => one.name === name).routes.map((one: JsonObject) => one.name);

describe('routes that a patch matches', () => {
  it.each<[keyof typeof nodes, string, string[]]>([
    ['client', '{vhost: {name: "web.test:80"}}', ['web.test:80 old', 'web.test:80 rest']],
    ['client', '{vhost: {domainName: web.test, route: {name: old}}}', ['web.test:80 old']],
    ['client', '{vhost: {route: {action: REDIRECT}}}', ['web.test:80 old']],
    ['client', '{name: "80", vhost: {route: {name: rest, action: ROUTE}}}', ['web.test:80 rest']],
    ['client', '{portNumber: 80, vhost: {route: {name: rest}}}', ['web.test:80 rest']],
    ['client', '{vhost: {domainName: db.test}}', []],
    ['client', '{portNumber: 81}', []],
    ['client', '{name: "http.8080"}', []],
    ['client', '{vhost: {route: {action: DIRECT_RESPONSE}}}', []],
    ['client', '{gateway: shop/door}', []],
    ['door', '{gateway: shop/door, vhost: {route: {name: old}}}', ['web.test:8080 old']],
    ['door', '{gateway: shop/window}', []],
    ['door', '{portNumber: 8080, portName: http-door, vhost: {route: {name: old}}}', ['web.test:8080 old']],
    ['door', '{portName: https}', []],
  ])('on a %s, %s matches the expected routes', (node, match, expected) => {
    const patchedMesh = new PatchedMesh({ patches: [route(match, header)] });
    expect(headed(patchedMesh.json('routes', nodes[node])[0]!)).toEqual(expected);
  });

  it('inline inbound routes are patched in the listener', () => {
    const patchedMesh = new PatchedMesh({
      patches: [
        `{applyTo: HTTP_ROUTE, match: {context: SIDECAR_INBOUND, routeConfiguration: {portNumber: 8080}}, patch: ${header}}`,
      ],
    });
    const text = JSON.stringify(patchedMesh.one('listeners', nodes.server, 'virtualInbound'));
    expect(text.match(/"requestHeadersToAdd"/g)).toHaveLength(1);
    expect(JSON.stringify(patchedMesh.json('listeners', nodes.client))).not.toContain('requestHeadersToAdd');
    expect(headed(patchedMesh.json('routes', nodes.server)[0]!)).toEqual([]);
  });
});

describe('operations on routes', () => {
  const webMatch = '{vhost: {name: "web.test:80"}}';
  const oldRouteMatch = '{vhost: {name: "web.test:80", route: {name: old}}}';
  const missingRouteMatch = '{vhost: {name: "web.test:80", route: {name: none}}}';

  it.each<[string, string[]]>([
    [route(oldRouteMatch, '{operation: REMOVE}'), ['rest']],
    [route(webMatch, `{operation: ADD, value: ${extraRoute('new')}}`), ['old', 'rest', 'new']],
    [route(webMatch, `{operation: INSERT_FIRST, value: ${extraRoute('new')}}`), ['new', 'old', 'rest']],
    [route(webMatch, `{operation: INSERT_BEFORE, value: ${extraRoute('new')}}`), ['new', 'old', 'rest']],
    [route(webMatch, `{operation: INSERT_AFTER, value: ${extraRoute('new')}}`), ['old', 'rest', 'new']],
    [route(oldRouteMatch, `{operation: INSERT_AFTER, value: ${extraRoute('new')}}`), ['old', 'new', 'rest']],
    [
      route(oldRouteMatch.replace('old', 'rest'), `{operation: INSERT_BEFORE, value: ${extraRoute('new')}}`),
      ['old', 'new', 'rest'],
    ],
    [route(missingRouteMatch, `{operation: INSERT_BEFORE, value: ${extraRoute('new')}}`), ['old', 'rest']],
  ])('the patch %s results in the expected routes', (patch, expected) => {
    expect(routeNames(new PatchedMesh({ patches: [patch] }).json('routes', nodes.client)[0]!)).toEqual(expected);
  });

  it('existing routes are patched before new ones are added', () => {
    const patches = [
      route(webMatch, `{operation: INSERT_FIRST, value: ${extraRoute('new')}}`),
      route(webMatch, '{operation: REMOVE}'),
    ];
    expect(routeNames(new PatchedMesh({ patches }).json('routes', nodes.client)[0]!)).toEqual(['new']);
  });

  it('virtual hosts are merged, replaced, removed and added', () => {
    const patchRoutes = (...patches: string[]) => new PatchedMesh({ patches }).json('routes', nodes.client)[0]!;
    const names = (configuration: JsonObject) => configuration.virtualHosts.map((one: JsonObject) => one.name);
    const unpatched = patchRoutes();
    expect(headed(patchRoutes(host(webMatch, header)))).toEqual(['web.test:80']);
    const renamedHost = patchRoutes(host(webMatch, '{operation: MERGE, value: {name: mine}}'));
    expect(routeNames(renamedHost, 'mine')).toEqual(['old', 'rest']);
    expect(names(patchRoutes(host(webMatch, '{operation: REMOVE}')))).toEqual(
      names(unpatched).filter((name: string) => name !== 'web.test:80'),
    );
    const other = `{name: other, domains: [other.test], routes: [${extraRoute('new')}]}`;
    expect(names(patchRoutes(host(webMatch, `{operation: REPLACE, value: ${other}}`)))).toContain('other');
    expect(names(patchRoutes(host('{}', `{operation: ADD, value: ${other}}`)))).toEqual([...names(unpatched), 'other']);
  });

  it('a virtual host is never added if it conflicts with another', () => {
    const conflictingHost = (name: string) => `{name: ${name}, domains: [web.test], routes: [${extraRoute('new')}]}`;
    const patchedMesh = new PatchedMesh({
      patches: [
        host('{}', `{operation: ADD, value: ${conflictingHost('late')}}`),
        host('{vhost: {name: allow_any}}', '{operation: MERGE, value: {domains: [web.test]}}'),
        host('{vhost: {name: allow_any}}', `{operation: REPLACE, value: {name: "web.test:80", domains: [q.test]}}`),
      ],
    });
    expect(patchedMesh.json('routes', nodes.client)).toEqual(new PatchedMesh().json('routes', nodes.client));
    expect(patchedMesh.problems()[0]).toBe('domain web.test is used by virtual host web.test:80');
    expect(patchedMesh.problems()[2]).toBe('virtual host web.test:80 already exists');
  });

  it('a route configuration is merged and keeps its name', () => {
    const patchedMesh = new PatchedMesh({
      patches: [
        '{applyTo: ROUTE_CONFIGURATION, patch: {operation: MERGE, value: {name: x, most_specific_header_mutations_wins: true}}}',
      ],
    });
    const [unpatched] = new PatchedMesh().json('routes', nodes.client);
    expect(patchedMesh.json('routes', nodes.client)).toEqual([{ ...unpatched, mostSpecificHeaderMutationsWins: true }]);
  });

  it('patched routes record their origins', () => {
    const patchedMesh = new PatchedMesh({ patches: [route(oldRouteMatch, header)] });
    const message = patchedMesh.resources('routes', nodes.client)[0]!.message as RouteConfiguration;
    const inner = message.virtualHosts.find(({ name }) => name === 'web.test:80')!.routes[0]!;
    expect(originsOf(inner).map(({ key }) => key.kind)).toEqual(['VirtualService', 'EnvoyFilter']);
  });
});

describe('parts of a patched configuration', () => {
  it('route configurations share all equal parts, patched or not, before and after encoding', () => {
    const closedSidecar = `
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: { name: closed, namespace: shop }
spec:
  workloadSelector: { labels: { app: closed } }
  outboundTrafficPolicy: { mode: REGISTRY_ONLY }`;
    const { mesh } = new PatchedMesh({ patches: [host('{vhost: {name: "web.test:80"}}', header)] }, closedSidecar);
    const cache = unboundedMemory();
    const partsOf = (app: string): ReadonlyMap<string, object> => {
      const shape = givenShape({ namespace: 'shop', labels: { app } }, mesh.context);
      const resource = buildRoutes(shape, mesh.context, ['80'], cache)[0] as ResourceOfParts;
      expect(resource.bytes.length).toBeGreaterThan(0);
      return new Map(resource.parts.map((part) => [(part.message as VirtualHost).name, part]));
    };
    const [openParts, shut] = [partsOf('open'), partsOf('closed')];
    expect([...openParts.keys()]).toEqual(['web.test:80', 'allow_any']);
    expect([...shut.keys()]).toEqual(['web.test:80', 'block_all']);
    expect(shut.get('web.test:80')).toBe(openParts.get('web.test:80'));
    expect((openParts.get('web.test:80') as Encodable).isEncoded).toBe(true);
  });

  it('parts are not decoded if no patch matches them, however many there are', () => {
    const moreServices = Array.from({ length: 100 }, (_, index) => serviceNamed(`s${index}.test`)).join('');
    const checksOf = (...patches: string[]): number => {
      const { mesh } = new PatchedMesh({ patches }, moreServices);
      const cache = unboundedMemory();
      const checks = vi.spyOn(VirtualHostPart.prototype, 'message', 'get');
      try {
        for (const [namespace, labels] of [['shop', {}] as const, ['home', { app: 'a' }] as const]) {
          const shape = givenShape({ namespace, labels }, mesh.context);
          const [resource] = buildRoutes(shape, mesh.context, ['80'], cache);
          expect((resource as ResourceOfParts).parts.length).toBeGreaterThan(100);
          expect(resource!.chunks.length).toBeGreaterThan(0);
        }
        return checks.mock.calls.length;
      } finally {
        checks.mockRestore();
      }
    };
    const configurationPatch = `{applyTo: ROUTE_CONFIGURATION, patch: {operation: MERGE, value: {most_specific_header_mutations_wins: true}}}`;
    const other = `{name: other, domains: [other.test], routes: [${extraRoute('new')}]}`;
    expect(checksOf(configurationPatch)).toBe(0);
    expect(checksOf(host('{}', `{operation: ADD, value: ${other}}`))).toBe(0);
    expect(checksOf(host('{vhost: {name: "s3.test:80"}}', header))).toBe(1);
    expect(checksOf(route('{vhost: {domainName: s4.test}}', header), configurationPatch)).toBe(1);
    expect(checksOf(host('{vhost: {name: "s3.test:80"}}', '{operation: MERGE, value: {name: mine}}'))).toBe(1);
    // The virtual hosts with equal names are patched once for all namespaces.
    expect(checksOf(route('{}', header))).toBeLessThanOrEqual(103);
  });

  const hostNamed = (name: string, domain: string): string =>
    `{name: "${name}", domains: [${domain}], routes: [${extraRoute('n')}]}`;
  const anyPatch = fc.oneof(
    fc.constantFrom(
      '{applyTo: ROUTE_CONFIGURATION, patch: {operation: MERGE, value: {name: x, most_specific_header_mutations_wins: true}}}',
      '{applyTo: ROUTE_CONFIGURATION, match: {routeConfiguration: {vhost: {name: "s1.test:80"}}}, patch: {operation: MERGE, value: {internal_only_headers: [q]}}}',
      '{applyTo: ROUTE_CONFIGURATION, match: {routeConfiguration: {vhost: {name: "none"}}}, patch: {operation: MERGE, value: {internal_only_headers: [r]}}}',
      `{applyTo: ROUTE_CONFIGURATION, patch: {operation: MERGE, value: {virtual_hosts: [${hostNamed('w', 'w.test')}]}}}`,
      `{applyTo: ROUTE_CONFIGURATION, patch: {operation: MERGE_AND_REPLACE_LIST, value: {virtual_hosts: [${hostNamed('v', 'v.test')}]}}}`,
    ),
    fc
      .record({
        of: fc.constantFrom('s1.test', 's2.test', 's3.test', ''),
        what: fc.constantFrom(
          header,
          '{operation: REMOVE}',
          `{operation: ADD, value: ${hostNamed('s2.test:80', 'z.test')}}`,
          `{operation: ADD, value: ${hostNamed('z', 's1.test')}}`,
          `{operation: REPLACE, value: ${hostNamed('s1.test:80', 's2.test')}}`,
          '{operation: MERGE, value: {name: "s3.test:80"}}',
          '{operation: MERGE, value: {domains: [s1.test]}}',
        ),
      })
      .map(({ of, what }) => host(of === '' ? '{}' : `{vhost: {name: "${of}:80"}}`, what)),
    fc
      .constantFrom('{operation: REMOVE}', `{operation: INSERT_FIRST, value: ${extraRoute('new')}}`, header)
      .map((operation) => route('{vhost: {domainName: s2.test}}', operation)),
  );

  it('patched parts have the same result as a patched configuration without parts', () => {
    const moreServices = [1, 2, 3].map((index) => serviceNamed(`s${index}.test`)).join('');
    fc.assert(
      fc.property(fc.array(anyPatch, { minLength: 1, maxLength: 4 }), (drawnPatches) => {
        const { mesh } = new PatchedMesh({ patches: drawnPatches }, moreServices);
        const shape = givenShape({ namespace: 'shop' }, mesh.context);
        const [unpatched] = unpatchedRoutes(shape, mesh.context, ['80']);
        const { name, schema, message } = unpatched!;
        const [inOne] = applyEnvoyFilters('RDS', [new EnvoyResource(name, schema, message)], shape, mesh.context);
        const [partsResource] = buildRoutes(shape, mesh.context, ['80']);
        const wholeMessage = fromBinary(schema, inOne!.bytes);
        expect(fromBinary(schema, partsResource!.bytes)).toEqual(wholeMessage);
        expect(fromBinary(schema, toBinary(schema, partsResource!.message))).toEqual(wholeMessage);
      }),
      { numRuns: 150 },
    );
  });
});
