/** A control plane gets configuration from another one with `GENERATOR: api` (docs/config-over-xds.md). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { afterEach, expect, test } from 'vitest';
import { typeUrls } from '../../../test/ads-client.ts';
import { ControlPlane, cartCluster, serviceEntry, stopControlPlanes } from '../../../test/harness/control-plane.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { linesOf } from '../../../test/harness/logged-line.ts';
import { ResourceSchema } from '../../gen/istio/mcp/v1alpha1/resource_pb.ts';
import { VirtualServiceSchema } from '../../gen/istio/networking/v1alpha3/networking_pb.ts';

const folders: string[] = [];
afterEach(async () => {
  await stopControlPlanes();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const withoutAuth = { ENABLE_XDS_API_GENERATOR_AUTH: 'false' };
const apiNode = {
  id: 'sidecar~127.0.0.1~backup.istio-system~istio-system.svc.cluster.local',
  metadata: { GENERATOR: 'api', NAMESPACE: 'istio-system', ISTIO_REVISION: 'default' },
};
const entryType = 'networking.istio.io/v1/ServiceEntry';
const routeType = 'networking.istio.io/v1/VirtualService';

const createPlane = (
  env: NodeJS.ProcessEnv,
  files: Record<string, string> = { 'cart.yaml': serviceEntry() },
): ControlPlane => new ControlPlane({}, files, () => {}, env);

function follower(feeder: ControlPlane, parameters = '', env: NodeJS.ProcessEnv = {}): ControlPlane {
  const address = `xds://127.0.0.1:${feeder.port('ads.listening')}${parameters}`;
  return new ControlPlane(
    {},
    {},
    ({ root }) => writeFileSync(join(root, 'mesh'), `configSources: [{address: "${address}"}]\n`),
    env,
  );
}

const route = (timeout: string): string => `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop, labels: {app: cart}}
spec:
  hosts: [cart.example.com]
  http: [{timeout: ${timeout}, route: [{destination: {host: cart.example.com, port: {number: 80}}, weight: 100}]}]
`;

test.each(['sotw', 'delta'])(
  'a control plane serves its objects to another control plane over %s, including changes and deletions',
  async (protocol) => {
    const feeder = createPlane(withoutAuth, { 'cart.yaml': serviceEntry(), 'route.yaml': route('1m30s') });
    await feeder.ready();
    const plane = follower(feeder, `?protocol=${protocol}`);
    await plane.ready();
    expect((await plane.subscribe()).clusters).toContain(cartCluster);
    const objects = (await plane.get('/debug/configz')).text;
    expect(objects).toContain('"timeoutMs":90000');
    feeder.write('cart.yaml', serviceEntry(['10.1.1.1'], 81));
    await eventually('the change is served', async () =>
      (await plane.subscribe()).clusters.includes('outbound|81||cart.example.com'),
    );
    feeder.write('more.yaml', serviceEntry().replaceAll('cart', 'more'));
    await eventually('the new one is served', async () =>
      (await plane.subscribe()).clusters.includes('outbound|80||more.example.com'),
    );
    rmSync(join(feeder.root, 'config', 'more.yaml'));
    await eventually(
      'it is gone',
      async () => !(await plane.subscribe()).clusters.includes('outbound|80||more.example.com'),
    );
    expect([...feeder.deviations(), ...plane.deviations()]).toEqual([]);
    expect(plane.troubles().filter((line) => line.includes('config-source'))).toEqual([]);
  },
);

test('a delta client receives only changed objects, in their API version', async () => {
  const feeder = createPlane(withoutAuth, {
    'cart.yaml': serviceEntry(),
    'more.yaml': serviceEntry().replaceAll('cart', 'more'),
    'route.yaml': route('5s'),
  });
  await feeder.ready();
  const connect = async () => {
    const stream = feeder.client('ads.listening').delta();
    stream.send({ node: apiNode, typeUrl: entryType });
    return { stream, first: await stream.next() };
  };
  const { stream, first } = await eventually('it is prepared', connect);
  expect(first.resources.map(({ name }) => name).sort()).toEqual(['shop/cart', 'shop/more']);
  stream.send({ typeUrl: entryType, responseNonce: first.nonce });
  stream.send({ typeUrl: routeType });
  const routes = await stream.next();
  const resource = fromBinary(ResourceSchema, routes.resources[0]!.resource!.value);
  expect(resource.metadata).toMatchObject({ name: 'shop/cart', labels: { app: 'cart' } });
  const body = anyUnpack(resource.body!, VirtualServiceSchema)!;
  expect(body).toMatchObject({
    hosts: ['cart.example.com'],
    http: [{ timeout: { seconds: 5n }, route: [{ weight: 100 }] }],
  });
  stream.send({ typeUrl: routeType, responseNonce: routes.nonce });
  feeder.write('more.yaml', serviceEntry(['10.1.1.1'], 81).replaceAll('cart', 'more'));
  const changedResponse = await stream.next();
  expect(changedResponse.resources.map(({ name }) => name)).toEqual(['shop/more']);
  stream.send({ typeUrl: entryType, responseNonce: changedResponse.nonce });
  rmSync(join(feeder.root, 'config', 'cart.yaml'));
  const removedResponse = await stream.next();
  expect([removedResponse.resources, removedResponse.removedResources]).toEqual([[], ['shop/cart']]);
  stream.cancel();
});

test('an unsupported kind or a kind without objects gets an empty response', async () => {
  const feeder = createPlane(withoutAuth);
  await feeder.ready();
  const sizes = await eventually('it is prepared', async () => {
    const stream = feeder.client('ads.listening').sotw();
    const counts: number[] = [];
    for (const [index, typeUrl] of [
      'core/v1alpha1/MeshConfig',
      'networking.istio.io/v1/Gateway',
      'extensions.istio.io/v1alpha1/TrafficExtension',
      entryType,
    ].entries()) {
      stream.send({ ...(index === 0 && { node: apiNode }), typeUrl });
      counts.push((await stream.next()).resources.length);
    }
    stream.cancel();
    return counts;
  });
  expect(sizes).toEqual([0, 0, 0, 1]);
});

test('a client that sends invented nonces and never acknowledges MeshConfig, as Istio does, receives each kind once', async () => {
  const feeder = createPlane(withoutAuth);
  await feeder.ready();
  const types = [
    'core/v1alpha1/MeshConfig',
    entryType,
    'networking.istio.io/v1/Gateway',
    'extensions.istio.io/v1alpha1/TrafficExtension',
  ];
  const subscribe = async () => {
    const stream = feeder.client('ads.listening').sotw();
    for (const [index, typeUrl] of types.entries())
      stream.send({ ...(index === 0 && { node: apiNode }), typeUrl, responseNonce: `2026-11-29T12:00:0${index}Z` });
    const sizes = new Map<string, number>();
    for (const _ of types) {
      const { typeUrl, resources, nonce: responseNonce, versionInfo } = await stream.next();
      sizes.set(typeUrl, resources.length);
      if (typeUrl !== types[0]) stream.send({ typeUrl, responseNonce, versionInfo });
    }
    return { stream, sizes };
  };
  const { stream, sizes } = await eventually('it is prepared', subscribe);
  expect([...sizes]).toEqual(types.map((typeUrl) => [typeUrl, typeUrl === entryType ? 1 : 0]));
  expect(await stream.unexpected()).toEqual([]);
  feeder.write('cart.yaml', serviceEntry(['10.1.1.1'], 81));
  expect((await stream.next()).typeUrl).toBe(entryType);
  stream.cancel();
});

test('a proxy that requests a configuration type gets no resources', async () => {
  const feeder = createPlane({});
  await feeder.ready();
  const { stream } = await feeder.subscribe();
  stream.send({ typeUrl: entryType });
  stream.send({ typeUrl: typeUrls.LDS });
  expect((await stream.next()).typeUrl).toBe(typeUrls.LDS);
  expect(feeder.troubles().filter((line) => line.includes('\tads\t'))).toEqual([]);
});

test('a client does not receive objects with the label of another revision', async () => {
  const labelled = serviceEntry()
    .replace('metadata: {', 'metadata: {labels: {istio.io/rev: canary}, ')
    .replaceAll('cart', 'new');
  const feeder = createPlane({ ...withoutAuth, REVISION: '' }, { 'cart.yaml': serviceEntry(), 'new.yaml': labelled });
  await feeder.ready();
  const names = async (revision: string): Promise<string[]> => {
    const stream = feeder.client('ads.listening').delta();
    stream.send({
      node: { ...apiNode, metadata: { ...apiNode.metadata, ISTIO_REVISION: revision } },
      typeUrl: entryType,
    });
    const { resources } = await stream.next();
    stream.cancel();
    return resources.map(({ name }) => name).sort();
  };
  expect(await eventually('it is prepared', () => names('default'))).toEqual(['shop/cart']);
  expect(await names('canary')).toEqual(['shop/cart', 'shop/new']);
});

test('a client without identity is rejected, and disabling this check logs a warning at start', async () => {
  const feeder = createPlane({});
  await feeder.ready();
  expect(linesOf(feeder.lines, 'option.configServedUnverified')).toEqual([]);
  const stream = feeder.client('ads.listening').sotw();
  stream.send({ node: apiNode, typeUrl: entryType });
  const { code, details } = await stream.ended;
  expect([code, details]).toEqual([
    16,
    expect.stringMatching(/identities of namespace istio-system only.*CLIENT_UNAUTHENTICATED/),
  ]);
  const other = createPlane(withoutAuth);
  await other.ready();
  expect(linesOf(other.lines, 'option.configServedUnverified')).toHaveLength(1);
});

test('a control plane reads configuration from another control plane over TLS, with an identity from the shared CA', async () => {
  const authority = mkdtempSync(join(tmpdir(), 'chartpilot-authority-'));
  folders.push(authority);
  const createSecurePlane = (files: Record<string, string>, mesh: string, namespace: string): ControlPlane =>
    new ControlPlane(
      { secureGRPCAddr: '127.0.0.1:0', namespace },
      files,
      ({ root }) => writeFileSync(join(root, 'mesh'), mesh),
      { SELF_SIGNED_CA_DIR: authority },
    );
  const feeder = createSecurePlane({ 'cart.yaml': serviceEntry() }, '', 'istio-system');
  await feeder.ready();
  const address = `xds://127.0.0.1:${feeder.port('ads.listening')}`;
  const mesh = `configSources: [{address: "${address}", tlsSettings: {mode: ISTIO_MUTUAL, subjectAltNames: [istiod.istio-system.svc]}}]\n`;
  const plane = createSecurePlane({}, mesh, 'istio-system');
  await plane.ready();
  expect((await plane.subscribe('ads.listening')).clusters).toContain(cartCluster);
  const unauthorized = createSecurePlane({}, mesh, 'shop');
  await eventually('it is refused', async () =>
    /PERMISSION_DENIED|got spiffe:\/\/cluster\.local\/ns\/shop/.test(
      (await unauthorized.get('/debug/configsourcez')).text,
    ),
  );
});
