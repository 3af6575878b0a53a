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
const extra = (name: string): string => `{name: ${name}, match: {prefix: /}, direct_response: {status: 418}}`;

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
    const patched = new PatchedMesh({ patches: [route(match, header)] });
    expect(headed(patched.json('routes', nodes[node])[0]!)).toEqual(expected);
  });

  it('inline inbound routes are patched in the listener', () => {
    const patched = new PatchedMesh({
      patches: [
        `{applyTo: HTTP_ROUTE, match: {context: SIDECAR_INBOUND, routeConfiguration: {portNumber: 8080}}, patch: ${header}}`,
      ],
    });
    const text = JSON.stringify(patched.one('listeners', nodes.server, 'virtualInbound'));
    expect(text.match(/"requestHeadersToAdd"/g)).toHaveLength(1);
    expect(JSON.stringify(patched.json('listeners', nodes.client))).not.toContain('requestHeadersToAdd');
    expect(headed(patched.json('routes', nodes.server)[0]!)).toEqual([]);
  });
});

describe('operations on routes', () => {
  const ofWeb = '{vhost: {name: "web.test:80"}}';
  const ofOld = '{vhost: {name: "web.test:80", route: {name: old}}}';
  const ofNone = '{vhost: {name: "web.test:80", route: {name: none}}}';

  it.each<[string, string[]]>([
    [route(ofOld, '{operation: REMOVE}'), ['rest']],
    [route(ofWeb, `{operation: ADD, value: ${extra('new')}}`), ['old', 'rest', 'new']],
    [route(ofWeb, `{operation: INSERT_FIRST, value: ${extra('new')}}`), ['new', 'old', 'rest']],
    [route(ofWeb, `{operation: INSERT_BEFORE, value: ${extra('new')}}`), ['new', 'old', 'rest']],
    [route(ofWeb, `{operation: INSERT_AFTER, value: ${extra('new')}}`), ['old', 'rest', 'new']],
    [route(ofOld, `{operation: INSERT_AFTER, value: ${extra('new')}}`), ['old', 'new', 'rest']],
    [route(ofOld.replace('old', 'rest'), `{operation: INSERT_BEFORE, value: ${extra('new')}}`), ['old', 'new', 'rest']],
    [route(ofNone, `{operation: INSERT_BEFORE, value: ${extra('new')}}`), ['old', 'rest']],
  ])('the patch %s results in the expected routes', (patch, expected) => {
    expect(routeNames(new PatchedMesh({ patches: [patch] }).json('routes', nodes.client)[0]!)).toEqual(expected);
  });

  it('existing routes are patched before new ones are added', () => {
    const patches = [
      route(ofWeb, `{operation: INSERT_FIRST, value: ${extra('new')}}`),
      route(ofWeb, '{operation: REMOVE}'),
    ];
    expect(routeNames(new PatchedMesh({ patches }).json('routes', nodes.client)[0]!)).toEqual(['new']);
  });

  it('virtual hosts are merged, replaced, removed and added', () => {
    const patched = (...patches: string[]) => new PatchedMesh({ patches }).json('routes', nodes.client)[0]!;
    const names = (configuration: JsonObject) => configuration.virtualHosts.map((one: JsonObject) => one.name);
    const unpatched = patched();
    expect(headed(patched(host(ofWeb, header)))).toEqual(['web.test:80']);
    const renamed = patched(host(ofWeb, '{operation: MERGE, value: {name: mine}}'));
    expect(routeNames(renamed, 'mine')).toEqual(['old', 'rest']);
    expect(names(patched(host(ofWeb, '{operation: REMOVE}')))).toEqual(
      names(unpatched).filter((name: string) => name !== 'web.test:80'),
    );
    const other = `{name: other, domains: [other.test], routes: [${extra('new')}]}`;
    expect(names(patched(host(ofWeb, `{operation: REPLACE, value: ${other}}`)))).toContain('other');
    expect(names(patched(host('{}', `{operation: ADD, value: ${other}}`)))).toEqual([...names(unpatched), 'other']);
  });

  it('a virtual host is never added if it conflicts with another', () => {
    const taken = (name: string) => `{name: ${name}, domains: [web.test], routes: [${extra('new')}]}`;
    const patched = new PatchedMesh({
      patches: [
        host('{}', `{operation: ADD, value: ${taken('late')}}`),
        host('{vhost: {name: allow_any}}', '{operation: MERGE, value: {domains: [web.test]}}'),
        host('{vhost: {name: allow_any}}', `{operation: REPLACE, value: {name: "web.test:80", domains: [q.test]}}`),
      ],
    });
    expect(patched.json('routes', nodes.client)).toEqual(new PatchedMesh().json('routes', nodes.client));
    expect(patched.problems()[0]).toBe('domain web.test is used by virtual host web.test:80');
    expect(patched.problems()[2]).toBe('virtual host web.test:80 already exists');
  });

  it('a route configuration is merged and keeps its name', () => {
    const patched = new PatchedMesh({
      patches: [
        '{applyTo: ROUTE_CONFIGURATION, patch: {operation: MERGE, value: {name: x, most_specific_header_mutations_wins: true}}}',
      ],
    });
    const [unpatched] = new PatchedMesh().json('routes', nodes.client);
    expect(patched.json('routes', nodes.client)).toEqual([{ ...unpatched, mostSpecificHeaderMutationsWins: true }]);
  });

  it('patched routes record their origins', () => {
    const patched = new PatchedMesh({ patches: [route(ofOld, header)] });
    const message = patched.resources('routes', nodes.client)[0]!.message as RouteConfiguration;
    const inner = message.virtualHosts.find(({ name }) => name === 'web.test:80')!.routes[0]!;
    expect(originsOf(inner).map(({ key }) => key.kind)).toEqual(['VirtualService', 'EnvoyFilter']);
  });
});

describe('parts of a patched configuration', () => {
  it('route configurations share all equal parts, patched or not, before and after encoding', () => {
    const closed = `
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: { name: closed, namespace: shop }
spec:
  workloadSelector: { labels: { app: closed } }
  outboundTrafficPolicy: { mode: REGISTRY_ONLY }`;
    const { mesh } = new PatchedMesh({ patches: [host('{vhost: {name: "web.test:80"}}', header)] }, closed);
    const memory = unboundedMemory();
    const partsOf = (app: string): ReadonlyMap<string, object> => {
      const shape = givenShape({ namespace: 'shop', labels: { app } }, mesh.context);
      const resource = buildRoutes(shape, mesh.context, ['80'], memory)[0] as ResourceOfParts;
      expect(resource.bytes.length).toBeGreaterThan(0);
      return new Map(resource.parts.map((part) => [(part.message as VirtualHost).name, part]));
    };
    const [open, shut] = [partsOf('open'), partsOf('closed')];
    expect([...open.keys()]).toEqual(['web.test:80', 'allow_any']);
    expect([...shut.keys()]).toEqual(['web.test:80', 'block_all']);
    expect(shut.get('web.test:80')).toBe(open.get('web.test:80'));
    expect((open.get('web.test:80') as Encodable).isEncoded).toBe(true);
  });

  it('parts are not decoded if no patch matches them, however many there are', () => {
    const more = Array.from({ length: 100 }, (_, index) => serviceNamed(`s${index}.test`)).join('');
    const checksOf = (...patches: string[]): number => {
      const { mesh } = new PatchedMesh({ patches }, more);
      const memory = unboundedMemory();
      const checks = vi.spyOn(VirtualHostPart.prototype, 'message', 'get');
      try {
        for (const [namespace, labels] of [['shop', {}] as const, ['home', { app: 'a' }] as const]) {
          const shape = givenShape({ namespace, labels }, mesh.context);
          const [resource] = buildRoutes(shape, mesh.context, ['80'], memory);
          expect((resource as ResourceOfParts).parts.length).toBeGreaterThan(100);
          expect(resource!.chunks.length).toBeGreaterThan(0);
        }
        return checks.mock.calls.length;
      } finally {
        checks.mockRestore();
      }
    };
    const whole = `{applyTo: ROUTE_CONFIGURATION, patch: {operation: MERGE, value: {most_specific_header_mutations_wins: true}}}`;
    const other = `{name: other, domains: [other.test], routes: [${extra('new')}]}`;
    expect(checksOf(whole)).toBe(0);
    expect(checksOf(host('{}', `{operation: ADD, value: ${other}}`))).toBe(0);
    expect(checksOf(host('{vhost: {name: "s3.test:80"}}', header))).toBe(1);
    expect(checksOf(route('{vhost: {domainName: s4.test}}', header), whole)).toBe(1);
    expect(checksOf(host('{vhost: {name: "s3.test:80"}}', '{operation: MERGE, value: {name: mine}}'))).toBe(1);
    // The virtual hosts with equal names are patched once for all namespaces.
    expect(checksOf(route('{}', header))).toBeLessThanOrEqual(103);
  });

  const mine = (name: string, domain: string): string =>
    `{name: "${name}", domains: [${domain}], routes: [${extra('n')}]}`;
  const anyPatch = fc.oneof(
    fc.constantFrom(
      '{applyTo: ROUTE_CONFIGURATION, patch: {operation: MERGE, value: {name: x, most_specific_header_mutations_wins: true}}}',
      '{applyTo: ROUTE_CONFIGURATION, match: {routeConfiguration: {vhost: {name: "s1.test:80"}}}, patch: {operation: MERGE, value: {internal_only_headers: [q]}}}',
      '{applyTo: ROUTE_CONFIGURATION, match: {routeConfiguration: {vhost: {name: "none"}}}, patch: {operation: MERGE, value: {internal_only_headers: [r]}}}',
      `{applyTo: ROUTE_CONFIGURATION, patch: {operation: MERGE, value: {virtual_hosts: [${mine('w', 'w.test')}]}}}`,
      `{applyTo: ROUTE_CONFIGURATION, patch: {operation: MERGE_AND_REPLACE_LIST, value: {virtual_hosts: [${mine('v', 'v.test')}]}}}`,
    ),
    fc
      .record({
        of: fc.constantFrom('s1.test', 's2.test', 's3.test', ''),
        what: fc.constantFrom(
          header,
          '{operation: REMOVE}',
          `{operation: ADD, value: ${mine('s2.test:80', 'z.test')}}`,
          `{operation: ADD, value: ${mine('z', 's1.test')}}`,
          `{operation: REPLACE, value: ${mine('s1.test:80', 's2.test')}}`,
          '{operation: MERGE, value: {name: "s3.test:80"}}',
          '{operation: MERGE, value: {domains: [s1.test]}}',
        ),
      })
      .map(({ of, what }) => host(of === '' ? '{}' : `{vhost: {name: "${of}:80"}}`, what)),
    fc
      .constantFrom('{operation: REMOVE}', `{operation: INSERT_FIRST, value: ${extra('new')}}`, header)
      .map((operation) => route('{vhost: {domainName: s2.test}}', operation)),
  );

  it('patched parts have the same result as a patched configuration without parts', () => {
    const more = [1, 2, 3].map((index) => serviceNamed(`s${index}.test`)).join('');
    fc.assert(
      fc.property(fc.array(anyPatch, { minLength: 1, maxLength: 4 }), (given) => {
        const { mesh } = new PatchedMesh({ patches: given }, more);
        const shape = givenShape({ namespace: 'shop' }, mesh.context);
        const [unpatched] = unpatchedRoutes(shape, mesh.context, ['80']);
        const { name, schema, message } = unpatched!;
        const [inOne] = applyEnvoyFilters('RDS', [new EnvoyResource(name, schema, message)], shape, mesh.context);
        const [ofParts] = buildRoutes(shape, mesh.context, ['80']);
        const whole = fromBinary(schema, inOne!.bytes);
        expect(fromBinary(schema, ofParts!.bytes)).toEqual(whole);
        expect(fromBinary(schema, toBinary(schema, ofParts!.message))).toEqual(whole);
      }),
      { numRuns: 150 },
    );
  });
});
