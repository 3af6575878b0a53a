/** Tests edge cases of mesh changes, with real generators and streams. */

import { test as base, describe, expect } from 'vitest';
import { clusterType, endpointType, listenerType, routeType } from '../../../machines/discovery/xds/ads-types.ts';
import { AdsTestClient } from '../../../test/ads-client.ts';
import { type AdsResponse, deltaSidecar, type ProtocolSidecar, sotwSidecar } from '../../../test/ads-sidecar.ts';
import { eventuallyHolds } from '../../../test/harness/eventually.ts';
import { readConfigFile } from '../../model/config/config-file.ts';
import { silentLogger } from '../../runtime/output/log.ts';
import { SettingsFiles } from '../config/files/settings-files.ts';
import { ConfigSnapshot } from '../config/snapshots/config-snapshot.ts';
import { encodeGenerated } from '../push/cache/encode-generated.ts';
import { EncodedCache } from '../push/cache/encoded-cache.ts';
import { MeshState } from '../push/contexts/mesh-state.ts';
import { MeshResources } from '../push/mesh-resources.ts';
import { type AdsServer, createAdsServer } from './ads-server.ts';

const node = {
  id: 'sidecar~10.0.0.1~web.shop~shop.svc.cluster.local',
  // Mutual TLS requires certificates in the proxy.
  metadata: { NAMESPACE: 'shop', INTERCEPTION_MODE: 'NONE', WORKLOAD_CERTIFICATES: 'true' },
};

interface Endpoint {
  readonly address: string;
  readonly account?: string;
}

function service(name: string, endpoints: readonly Endpoint[], namespace = 'shop'): string {
  const list = endpoints.map(({ address, account }) => ({ address, ...(account && { serviceAccount: account }) }));
  return `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  hosts: [${name}.example.com]
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: ${JSON.stringify(list)}
`;
}

const onlyOwnNamespace = `apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default, namespace: shop}
spec:
  egress: [{hosts: ["./*"]}]
`;

const mutualTls = `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop}
spec:
  host: cart.example.com
  trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}
`;

const cluster = (name: string): string => `outbound|80||${name}.example.com`;

interface World {
  /** Replaces the files. */
  apply(...documents: string[]): void;
  sidecar(): ProtocolSidecar;
  /** Returns a sidecar that has acknowledged all resources. */
  createSyncedSidecar(): Promise<ProtocolSidecar>;
}

for (const protocol of ['state of the world', 'delta'] as const) {
  const test = base.extend<{ world: World }>({
    world: async ({ task: _ }, use) => {
      const endings: (() => void)[] = [];
      const directory = { snapshot: ConfigSnapshot.empty };
      const state = new MeshState({
        settings: new SettingsFiles(() => {}),
        meshConfigs: directory,
        domain: 'cluster.local',
        clusterId: 'Kubernetes',
      });
      const cache = new EncodedCache({ encode: encodeGenerated, maxEntries: 1_000 });
      const source = new MeshResources({ context: () => state.context, cache });
      state.onPublished((publishedState) => source.recordPublication(publishedState));
      const server: AdsServer = createAdsServer({ source, logger: silentLogger });
      const { port } = await server.listen('127.0.0.1:0');
      endings.push(() => server.close());
      const sidecar = (): ProtocolSidecar => {
        const client = new AdsTestClient(port);
        endings.unshift(() => client.close());
        return protocol === 'delta' ? deltaSidecar(client, node) : sotwSidecar(client, node);
      };
      await use({
        apply(...documents) {
          const { configs } = readConfigFile('mesh.yaml', documents.join('---\n'), { creationTimestamp: 0 });
          directory.snapshot = new ConfigSnapshot(configs);
          const { changedServices, changedEndpoints } = state.computeServices();
          const changedKeys = [...changedServices, ...changedEndpoints];
          const isForced = state.context === undefined;
          const { version } = state.publishContext({ forced: isForced, changedKeys });
          if (changedKeys.length > 0) server.push({ version, forced: isForced, configs: new Set(changedKeys) });
        },
        sidecar,
        async createSyncedSidecar() {
          const servedSidecar = sidecar();
          await requestAndAck(servedSidecar, clusterType, []);
          await requestAndAck(servedSidecar, endpointType, [cluster('cart'), cluster('user')]);
          await requestAndAck(servedSidecar, listenerType, []);
          await requestAndAck(servedSidecar, routeType, ['80']);
          await eventuallyHolds(() =>
            expect(
              server.connections()[0]?.watches.every(({ nonceSent, nonceAcked }) => nonceSent === nonceAcked),
            ).toBe(true),
          );
          return servedSidecar;
        },
      });
      for (const end of endings) end();
    },
  });

  describe(protocol, () => {
    const cart = service('cart', [{ address: '10.1.1.1' }]);
    const user = service('user', [{ address: '10.2.1.1' }]);

    test('a changed endpoint is pushed with only the endpoints of its clusters (row 15)', async ({ world }) => {
      world.apply(cart, user);
      const sidecar = await world.createSyncedSidecar();
      world.apply(service('cart', [{ address: '10.1.1.2' }]), user);
      expect(await sidecar.next()).toMatchObject({ typeUrl: endpointType, names: [cluster('cart')] });
      expect(await sidecar.unexpected()).toEqual([]);
    });

    test('a new service is pushed with clusters, and its endpoints are sent on request (row 16)', async ({ world }) => {
      world.apply(cart, user);
      const sidecar = await world.createSyncedSidecar();
      world.apply(cart, user, service('fresh', [{ address: '10.3.1.1' }]));
      const response = await upTo(sidecar, clusterType);
      expect(response.names).toContain(cluster('fresh'));
      const all = [cluster('cart'), cluster('user'), cluster('fresh')];
      sidecar.requestNames(endpointType, protocol === 'delta' ? [cluster('fresh')] : all);
      const endpoints = await upTo(sidecar, endpointType, ({ names }) => names.includes(cluster('fresh')));
      expect(endpoints.names).toContain(cluster('fresh'));
    });

    test('a new service account of an endpoint is pushed with clusters and endpoints (row 17)', async ({ world }) => {
      world.apply(service('cart', [{ address: '10.1.1.1', account: 'one' }]), user, mutualTls);
      const sidecar = await world.createSyncedSidecar();
      world.apply(
        service('cart', [
          { address: '10.1.1.1', account: 'one' },
          { address: '10.1.1.2', account: 'two' },
        ]),
        user,
        mutualTls,
      );
      const responses = [await sidecar.next(), await sidecar.next()];
      expect(responses.map(({ typeUrl }) => typeUrl)).toEqual([clusterType, endpointType]);
      expect(responses[0]!.names).toContain(cluster('cart'));
      expect(responses[1]!.names).toContain(cluster('cart'));
    });

    test('an unchanged configuration is not pushed (row 18)', async ({ world }) => {
      world.apply(cart, user);
      const sidecar = await world.createSyncedSidecar();
      world.apply(cart, user);
      expect(await sidecar.unexpected()).toEqual([]);
    });

    test("a service outside a Sidecar's scope is not pushed to the proxies of that Sidecar (row 19)", async ({
      world,
    }) => {
      const serviceElsewhere = (address: string): string => service('far', [{ address }], 'elsewhere');
      world.apply(cart, user, onlyOwnNamespace, serviceElsewhere('10.4.1.1'));
      const sidecar = await world.createSyncedSidecar();
      world.apply(cart, user, onlyOwnNamespace, serviceElsewhere('10.4.1.2'));
      expect(await sidecar.unexpected()).toEqual([]);
    });

    test('a deleted service loses its clusters (row 20)', async ({ world }) => {
      world.apply(cart, user);
      const sidecar = await world.createSyncedSidecar();
      world.apply(cart);
      const { names, removed } = await upTo(sidecar, clusterType);
      if (protocol === 'delta') expect(removed).toEqual([cluster('user')]);
      else expect([names.includes(cluster('cart')), names.includes(cluster('user'))]).toEqual([true, false]);
    });
  });
}

/** Requests a type and acknowledges the response. */
async function requestAndAck(sidecar: ProtocolSidecar, typeUrl: string, names: readonly string[]): Promise<void> {
  sidecar.requestNames(typeUrl, names);
  sidecar.ack(await upTo(sidecar, typeUrl), names);
}

async function upTo(
  sidecar: ProtocolSidecar,
  typeUrl: string,
  suits: (seen: AdsResponse) => boolean = () => true,
): Promise<AdsResponse> {
  for (;;) {
    const response = await sidecar.next();
    if (response.typeUrl === typeUrl && suits(response)) return response;
  }
}
