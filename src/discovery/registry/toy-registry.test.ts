/**
 * Tests a new type of registry, built as README.md of this folder describes: an external catalog of names and addresses that notifies of changes.
 * Such registries are added and replaced, fail, and are removed at runtime.
 */

import { fromBinary } from '@bufbuild/protobuf';
import { afterEach, expect, test } from 'vitest';
import { type SotwStream, typeUrls } from '../../../test/ads-client.ts';
import { ControlPlane, stopControlPlanes } from '../../../test/harness/control-plane.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { linesOf } from '../../../test/harness/logged-line.ts';
import { ClusterLoadAssignmentSchema } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import type { Endpoint, Service } from '../../model/services/service.ts';
import { MemoryRegistry } from './memory-registry.ts';
import type { RegistryEvents, RegistryOffer, XdsUpdater } from './registry.ts';

afterEach(stopControlPlanes);

interface CatalogueClient {
  /** Called with the full list, and again when it changes. */
  listed(addressesByName: Readonly<Record<string, readonly string[]>>): void;
  lost(reason: string): void;
}

/** The external catalog. */
class Catalogue {
  readonly clients = new Set<CatalogueClient>();
  #list: Readonly<Record<string, readonly string[]>> | undefined;
  refuses = false;

  connect(client: CatalogueClient): () => void {
    if (this.refuses) throw new Error('connection refused');
    this.clients.add(client);
    if (this.#list !== undefined) client.listed(this.#list);
    return () => this.clients.delete(client);
  }

  publish(list: Readonly<Record<string, readonly string[]>>): void {
    this.#list = list;
    for (const { listed } of this.clients) listed(list);
  }

  simulateOutage(): void {
    this.refuses = true;
    for (const { lost } of this.clients) lost('connection reset');
  }
}

const toy = { provider: 'Toy', cluster: 'one' };

// ---- the adapter, which is everything that a new registry needs

class ToyRegistry extends MemoryRegistry {
  readonly #catalogue: Catalogue;
  #names: readonly string[] | undefined;
  #disconnect = (): void => {};

  constructor(catalogue: Catalogue, updates: XdsUpdater) {
    super(toy, updates);
    this.#catalogue = catalogue;
  }

  override run(events?: RegistryEvents): void {
    super.run(events);
    this.#disconnect = this.#catalogue.connect({
      listed: (list) => this.#adopt(list),
      lost: (reason) => this.notifyFailed(new Error(reason)),
    });
  }

  override stop(): void {
    this.#disconnect();
    super.stop();
  }

  override hasSynced(): boolean {
    return super.hasSynced() && this.#names !== undefined;
  }

  #adopt(list: Readonly<Record<string, readonly string[]>>): void {
    const isFirst = this.#names === undefined;
    for (const [name, addresses] of Object.entries(list)) this.putService(serviceOf(name), addresses.map(endpointOf));
    for (const name of this.#names ?? []) if (!(name in list)) this.removeService(serviceOf(name));
    this.#names = Object.keys(list);
    if (isFirst) this.notifySynced();
  }
}

function serviceOf(name: string): Service {
  return {
    ...{ hostname: `${name}.toy`, namespace: 'shop', defaultAddress: '0.0.0.0', addresses: [], labels: {} },
    ...{ resolution: 'ClientSideLB', meshExternal: false, serviceAccounts: [], creationTime: 0, registry: 'Toy' },
    ...{ ports: [{ name: 'http', number: 80, protocol: 'HTTP' }], exportTo: new Set(['*']) },
    origin: { kind: 'Toy', namespace: 'shop', name },
  };
}

function endpointOf(address: string): Endpoint {
  return {
    ...{ address, port: 8080, servicePortName: 'http', labels: {}, serviceAccount: '', network: '', locality: '' },
    ...{ clusterId: 'one', weight: 0, tlsMode: 'disabled', namespace: 'shop', workloadName: '', health: 'healthy' },
  };
}

// ---- tests

const cart = 'outbound|80||cart.toy';

const offerOf = (catalogue: Catalogue, revision = '1'): RegistryOffer => ({
  ...{ provider: toy.provider, clusterId: toy.cluster, revision },
  create: (updates) => new ToyRegistry(catalogue, updates),
});

interface World {
  readonly plane: ControlPlane;
  /** Sets the registries that are not built from objects. */
  offer(...offers: readonly RegistryOffer[]): void;
}

async function startWorld(env: NodeJS.ProcessEnv, ...first: readonly RegistryOffer[]): Promise<World> {
  let offer: World['offer'] = () => {};
  const plane = new ControlPlane({}, {}, () => {}, env, {
    registries: (onOffers) => {
      offer = (...offers) => onOffers(offers);
      onOffers(first);
      return () => {};
    },
  });
  await plane.ready();
  return { plane, offer: (...offers) => offer(...offers) };
}

/** A stream that subscribes to the endpoints of service cart. */
async function watching(plane: ControlPlane): Promise<{ stream: SotwStream; next: () => Promise<string[]> }> {
  const { stream } = await plane.subscribe();
  stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
  const next = async (): Promise<string[]> => {
    for (;;) {
      const { typeUrl, nonce, resources } = await stream.next();
      stream.send({ typeUrl, responseNonce: nonce, ...(typeUrl === typeUrls.EDS && { resourceNames: [cart] }) });
      if (typeUrl !== typeUrls.EDS) continue;
      return resources.flatMap(({ value }) =>
        fromBinary(ClusterLoadAssignmentSchema, value).endpoints.flatMap(({ lbEndpoints }) =>
          lbEndpoints.map(({ hostIdentifier }) => {
            const address = hostIdentifier.case === 'endpoint' ? hostIdentifier.value.address?.address : undefined;
            return address?.case === 'socketAddress' ? address.value.address : '';
          }),
        ),
      );
    }
  };
  stream.send({ typeUrl: typeUrls.EDS, resourceNames: [cart] });
  return { stream, next };
}

const actorsOf = ({ records }: ControlPlane): string[] =>
  records.flatMap((record) => (record.kind === 'spawn' && /^registry-\d+$/.test(record.actor) ? [record.actor] : []));

test('a registry that is added at run time has its own actor, and its services are pushed', async () => {
  const { plane, offer } = await startWorld({});
  const previous = actorsOf(plane).length;
  const { stream, clusters } = await plane.subscribe();
  stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
  const catalogue = new Catalogue();
  catalogue.publish({ cart: ['10.1.1.1'] });
  offer(offerOf(catalogue));
  expect((await stream.next()).resources.length).toBe(clusters.length + 1);
  expect(actorsOf(plane).length).toBe(previous + 1);
  expect(plane.deviations()).toEqual([]);
});

test('a change in the catalog is pushed, and only as endpoints if only an address changed', async () => {
  const catalogue = new Catalogue();
  catalogue.publish({ cart: ['10.1.1.1'] });
  const { plane } = await startWorld({}, offerOf(catalogue));
  const { next } = await watching(plane);
  expect(await next()).toEqual(['10.1.1.1']);
  catalogue.publish({ cart: ['10.1.1.1', '10.1.1.2'] });
  expect(await next()).toEqual(['10.1.1.1', '10.1.1.2']);
  expect(plane.deviations()).toEqual([]);
});

test('a registry that replaces another becomes active when it has listed everything, so that no endpoint is removed', async () => {
  const [first, secondCatalogue] = [new Catalogue(), new Catalogue()];
  first.publish({ cart: ['10.1.1.1'], gone: ['10.9.9.9'] });
  const { plane, offer } = await startWorld({}, offerOf(first));
  const { stream, next } = await watching(plane);
  expect(await next()).toEqual(['10.1.1.1']);
  offer(offerOf(secondCatalogue, '2'));
  await eventually(
    'the second runs, and the first does not',
    () => secondCatalogue.clients.size === 1 && first.clients.size === 0,
  );
  expect(await stream.unexpected()).toEqual([]);
  expect((await plane.subscribe()).clusters).toEqual(expect.arrayContaining([cart, 'outbound|80||gone.toy']));
  secondCatalogue.publish({ cart: ['10.2.2.2'] });
  expect(await next()).toEqual(['10.2.2.2']);
  expect((await plane.subscribe()).clusters).not.toContain('outbound|80||gone.toy');
  secondCatalogue.publish({ cart: ['10.2.2.2', '10.2.2.3'] });
  expect(await next()).toEqual(['10.2.2.2', '10.2.2.3']);
  expect(plane.deviations()).toEqual([]);
});

test('a registry that syncs immediately, without a notification, can replace another', async () => {
  const catalogue = new Catalogue();
  catalogue.publish({ cart: ['10.1.1.1'] });
  const { plane, offer } = await startWorld({}, offerOf(catalogue));
  const { next } = await watching(plane);
  expect(await next()).toEqual(['10.1.1.1']);
  const createRegistry = (updates: XdsUpdater): MemoryRegistry => {
    const registry = new MemoryRegistry(toy, updates);
    registry.putService(serviceOf('cart'), [endpointOf('10.2.2.2')]);
    return registry;
  };
  offer({ ...{ provider: toy.provider, clusterId: toy.cluster, revision: '2' }, create: createRegistry });
  expect(await next()).toEqual(['10.2.2.2']);
  expect(plane.deviations()).toEqual([]);
});

test('a failed registry keeps its content, is recreated after 1 s, and continues', async () => {
  const catalogue = new Catalogue();
  catalogue.publish({ cart: ['10.1.1.1'] });
  const { plane } = await startWorld({}, offerOf(catalogue));
  const { stream, next } = await watching(plane);
  expect(await next()).toEqual(['10.1.1.1']);
  catalogue.simulateOutage();
  await eventually(
    'it is reported',
    () => linesOf(plane.lines, 'registry.failed', { registry: 'Toy/one', reason: /connection reset/ }).length > 0,
  );
  expect(await stream.unexpected()).toEqual([]);
  expect((await plane.subscribe()).clusters).toContain(cart);
  await eventually(
    'it is tried again',
    () => linesOf(plane.lines, 'registry.failed', { reason: /connection refused/ }).length > 0,
  );
  catalogue.publish({ cart: ['10.1.1.2'] });
  catalogue.refuses = false;
  expect(await next()).toEqual(['10.1.1.2']);
  expect(plane.deviations()).toEqual([]);
});

test('a removed registry is removed with its endpoints and services', async () => {
  const catalogue = new Catalogue();
  catalogue.publish({ cart: ['10.1.1.1'] });
  const { plane, offer } = await startWorld({}, offerOf(catalogue));
  const { stream, clusters } = await plane.subscribe();
  expect(clusters).toContain(cart);
  stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
  offer();
  expect((await stream.next()).resources.length).toBe(clusters.length - 1);
  expect(catalogue.clients.size).toBe(0);
  expect(plane.deviations()).toEqual([]);
});

test('an unresponsive registry does not delay other services, and its own services are served when it recovers', async () => {
  const catalogue = new Catalogue();
  catalogue.refuses = true;
  const { plane } = await startWorld({ PILOT_REMOTE_CLUSTER_TIMEOUT: '300ms' }, offerOf(catalogue));
  expect(linesOf(plane.lines, 'services.synced.missing', { registries: 'Toy/one' })).toHaveLength(1);
  const { stream, clusters } = await plane.subscribe();
  stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
  catalogue.refuses = false;
  catalogue.publish({ cart: ['10.1.1.1'] });
  expect((await stream.next()).resources.length).toBe(clusters.length + 1);
  expect(plane.deviations()).toEqual([]);
});
