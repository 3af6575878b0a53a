import { beforeEach, describe, expect, it } from 'vitest';
import { clusterType, endpointType, listenerType, routeType } from '../../../machines/discovery/xds/ads-types.ts';
import type { Watch, Watches } from '../../../machines/discovery/xds/watch-record.ts';
import { type Config, configKeyText } from '../../model/config/config.ts';
import { readConfigFile } from '../../model/config/config-file.ts';
import { SettingsFiles } from '../config/files/settings-files.ts';
import { ConfigSnapshot } from '../config/snapshots/config-snapshot.ts';
import { EncodedCache } from '../push/cache/encoded-cache.ts';
import { MeshState } from '../push/contexts/mesh-state.ts';
import { type MeshNode, MeshResources } from '../push/mesh-resources.ts';
import { ObjectDistribution } from './distribution.ts';
import { conditionsOf, decidedConditions, type ObjectError, type ObjectFindings } from './object-findings.ts';
import type { OtherCounts } from './replica-report.ts';
import type { KnownStatus } from './status-objects.ts';

const noOtherCounts: OtherCounts = { upToDate: 0, concerned: 0, unreportedReplicas: [], uncountedReplicas: [] };

const entry = (name: string, generation = 1, port = 80): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop, generation: ${generation}}
spec:
  hosts: [${name}.example.com]
  resolution: STATIC
  ports: [{number: ${port}, name: http, protocol: HTTP}]
  endpoints: [{address: 10.1.1.1}]
`;

const filter = (name: string, generation: number, cluster: string, namespace = 'shop', selects = ''): string => `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: ${name}, namespace: ${namespace}, generation: ${generation}}
spec:
  ${selects === '' ? '' : `workloadSelector: {labels: {app: ${selects}}}`}
  configPatches:
    - applyTo: CLUSTER
      match: {context: SIDECAR_OUTBOUND, cluster: {name: "outbound|80||${cluster}.example.com"}}
      patch: {operation: MERGE, value: {connect_timeout: ${generation}s}}
`;

const route = (name: string, generation: number, seconds = generation): string => `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: ${name}, namespace: shop, generation: ${generation}}
spec:
  hosts: [${name}.example.com]
  http: [{timeout: ${seconds}s, route: [{destination: {host: ${name}.example.com}}]}]
`;

const types = [clusterType, endpointType, listenerType, routeType];
const cart = 'outbound|80||cart.example.com';

/** A client whose ACKs and NACKs the test controls. */
class Client {
  readonly node: MeshNode;
  watches: Watches = {};
  #nonce = 0;

  constructor(node: MeshNode) {
    this.node = node;
    node.provideWatches(() => this.watches);
    for (const typeUrl of types) this.#recordSent(typeUrl);
  }

  #recordSent(typeUrl: string): void {
    const previous = this.watches[typeUrl];
    const names = typeUrl === routeType ? ['80'] : typeUrl === endpointType ? [cart] : [];
    const watch: Watch = {
      ...{
        wildcard: names.length === 0,
        names,
        due: { all: false, requested: [], changed: false },
        ordered: 'nothing',
      },
      ...{ nonceAcked: '', nonceRejected: '', nonceOverdue: '', versionAcked: '', lastError: '', sentAt: 1 },
      ...previous,
      ...{ nonceSent: `${++this.#nonce}`, versionSent: this.node.context.version },
    };
    this.watches = { ...this.watches, [typeUrl]: watch };
  }

  /** Moves the client to the newest push context and sends affected types. */
  receivePush(changedKeys: ReadonlySet<string>, isForced = false): void {
    const version = 'of no matter';
    for (const typeUrl of this.node.typesToPush({ version, forced: isForced, configs: changedKeys }, types))
      this.#recordSent(typeUrl);
  }

  acknowledges(...typeUrls: readonly string[]): void {
    for (const typeUrl of typeUrls.length === 0 ? types : typeUrls) {
      const watch = this.watches[typeUrl]!;
      const acked = { nonceAcked: watch.nonceSent, versionAcked: watch.versionSent, lastError: '' };
      this.watches = { ...this.watches, [typeUrl]: { ...watch, ...acked } };
      this.node.acknowledged(typeUrl, watch.versionSent);
    }
  }

  rejects(typeUrl: string, lastError: string): void {
    const watch = this.watches[typeUrl]!;
    this.watches = { ...this.watches, [typeUrl]: { ...watch, nonceRejected: watch.nonceSent, lastError } };
    this.node.rejected(typeUrl);
  }
}

/** A mesh with objects of the test and their distribution. */
class World {
  now = 100_000;
  generations = 0;
  readonly dueKeys: string[] = [];
  urgent = 0;
  readonly statuses = new Map<string, KnownStatus['conditions']>();
  readonly cache = new EncodedCache({ maxEntries: 1_000 });
  readonly directory = { snapshot: ConfigSnapshot.empty };
  readonly state = new MeshState({
    ...{ settings: new SettingsFiles(() => {}), meshConfigs: this.directory as never },
    ...{ domain: 'cluster.local', clusterId: 'Kubernetes' },
  });
  readonly resources: MeshResources = new MeshResources({
    context: () => this.state.context,
    cache: this.cache,
    rejections: {
      onRejected: (node, typeUrl) => this.distribution.onRejected(node, typeUrl),
      onAccepted: (node, typeUrl) => this.distribution.onAccepted(node, typeUrl),
      disconnected: (node) => this.distribution.disconnected(node),
    },
  });
  setError: (key: string, error: ObjectError | undefined) => void = () => {};
  readonly clients: Client[] = [];
  /** Other replicas with their own proxies. */
  readonly otherReplicas = {
    refresh: async () => {},
    isWriter: true,
    readAt: Number.POSITIVE_INFINITY,
    reportedIncomplete: [] as (readonly [string, number])[],
    incompleteObjects(): readonly (readonly [string, number])[] {
      return this.reportedIncomplete;
    },
    counts: noOtherCounts as OtherCounts | undefined,
    countsOf(_key: string, _generation: number, since: number): OtherCounts | undefined {
      return this.readAt < since ? undefined : this.counts;
    },
  };
  readonly distribution = new ObjectDistribution({
    objects: {
      statusOf: (key) =>
        this.directory.snapshot.byKey.has(key) ? { conditions: this.statuses.get(key) ?? new Map() } : undefined,
      onErrors: (listener) => {
        this.setError = listener;
      },
    },
    configs: () => this.directory.snapshot,
    proxies: () => this.resources.nodes,
    generate: (...parameters) => {
      this.generations++;
      return this.cache.generate(...parameters);
    },
    otherReplicas: this.otherReplicas,
    now: () => this.now,
  });

  constructor() {
    this.state.onPublished((publishedState) => {
      this.resources.recordPublication(publishedState);
      this.distribution.onPublished(publishedState);
    });
    this.distribution.onDue((keys, urgent) => {
      this.dueKeys.push(...keys);
      if (urgent) this.urgent += keys.length;
    });
  }

  /** Replaces the objects of the cluster and pushes them, without responses of clients. */
  apply(...documents: string[]): void {
    const previous = this.directory.snapshot;
    const { configs, problems } = readConfigFile('mesh.yaml', documents.join('---'), { creationTimestamp: 0 });
    expect(problems).toEqual([]);
    this.directory.snapshot = new ConfigSnapshot(configs);
    const changes = this.directory.snapshot.changesSince(previous).map(({ key }) => key);
    const keys = configs.map((config) => configKeyText(config));
    const changedKeysOfStore = keys.filter(
      (key) => versionOf(previous.byKey.get(key)) !== versionOf(this.directory.snapshot.byKey.get(key)),
    );
    this.distribution.objectsComposed([...changes, ...changedKeysOfStore], new Set(changes));
    const { changedServices, changedEndpoints } = this.state.computeServices();
    const isForced = this.state.context === undefined;
    const changedKeys = changes.filter((key) => !key.startsWith('ServiceEntry/'));
    const allChangedKeys = [...changedKeys, ...changedServices, ...changedEndpoints];
    if (allChangedKeys.length === 0 && !isForced) return;
    this.state.publishContext({ forced: isForced, changedKeys: allChangedKeys });
    for (const client of this.clients) client.receivePush(new Set(allChangedKeys), isForced);
  }

  connect(app = 'web', namespace = 'shop'): Client {
    const index = this.clients.length + 1;
    const id = `sidecar~10.0.0.${index}~${app}-${index}.${namespace}~${namespace}.svc.cluster.local`;
    const metadata = { NAMESPACE: namespace, INTERCEPTION_MODE: 'NONE', LABELS: { app } };
    const opened = this.resources.openNode({ id, cluster: app, metadata });
    if ('error' in opened) throw new Error(opened.error);
    const client = new Client(opened.resources as MeshNode);
    this.clients.push(client);
    return client;
  }

  /** @returns objects whose status must be written */
  async evaluate(): Promise<string[]> {
    this.dueKeys.length = 0;
    await this.distribution.evaluate();
    return [...this.dueKeys].sort();
  }

  /** Conditions of an object as short text. */
  conditions(key: string): string[] {
    const conditions = conditionsOf(this.distribution.findingsOf(key));
    return conditions.map(
      ({ type, status, message, observedGeneration }) => `${type} ${status} ${observedGeneration}: ${message}`,
    );
  }

  findings(key: string): ObjectFindings {
    return this.distribution.findingsOf(key);
  }
}

const versionOf = (config: Config | undefined): string => `${config?.generation} ${config?.uid}`;

let world: World;
let one: Client;
let other: Client;

const services = [entry('cart'), entry('user')];
const badFilter = 'EnvoyFilter/shop/bad';
const reason = `Error adding/updating cluster(s) ${cart}: it will not do`;

/** All proxies have acknowledged everything, and no status is due. */
beforeEach(async () => {
  world = new World();
  world.apply(...services);
  one = world.connect();
  other = world.connect();
  one.acknowledges();
  other.acknowledges();
  await world.evaluate();
});

describe('a changed object', () => {
  it('is reported only when all affected proxies have acknowledged it', async () => {
    const farProxy = world.connect('web', 'elsewhere');
    farProxy.acknowledges();
    world.apply(...services, filter('a', 1, 'cart'));
    expect(await world.evaluate()).toEqual([]);
    one.acknowledges();
    expect(await world.evaluate()).toEqual([]);
    other.acknowledges();
    expect(await world.evaluate()).toEqual(['EnvoyFilter/shop/a']);
    expect(world.conditions('EnvoyFilter/shop/a')).toEqual(['Reconciled True 1: 2/2 proxies up to date']);
    expect(await world.evaluate()).toEqual([]);
  });

  it('is reported at most once in 10 s when its count changes', async () => {
    world.apply(...services, route('cart', 1));
    await world.evaluate();
    world.now += 9_999;
    expect(await world.evaluate()).toEqual([]);
    world.now += 1;
    expect(await world.evaluate()).toEqual(['VirtualService/shop/cart']);
    expect(world.conditions('VirtualService/shop/cart')).toEqual(['Reconciled False 1: 0/2 proxies up to date']);
    one.acknowledges();
    world.now += 5_000;
    expect(await world.evaluate()).toEqual([]);
    world.now += 5_000;
    expect(await world.evaluate()).toEqual(['VirtualService/shop/cart']);
    world.now += 60_000;
    expect(await world.evaluate()).toEqual([]);
  });

  it('counts as acknowledged after the ACK of a later version, but not after a late ACK of an earlier one', async () => {
    world.apply(...services, route('cart', 1));
    const sentWatches = one.watches;
    world.apply(...services, route('cart', 2));
    other.acknowledges();
    // The client has acknowledged the previous version, but not the next response.
    one.watches = {
      ...one.watches,
      [routeType]: {
        ...one.watches[routeType]!,
        nonceAcked: sentWatches[routeType]!.nonceSent,
        versionAcked: sentWatches[routeType]!.versionSent,
      },
    };
    await world.evaluate();
    expect(world.findings('VirtualService/shop/cart').distribution).toEqual({
      generation: 2,
      upToDate: 1,
      concerned: 2,
    });
    one.acknowledges();
    expect(await world.evaluate()).toEqual(['VirtualService/shop/cart']);
  });

  it('is reported eventually even if many objects change together, such as when a mesh is installed', async () => {
    const hosts = Array.from({ length: 200 }, (_, index) => `host-${index}`);
    world.apply(...services, ...hosts.map((host) => route(host, 1)));
    one.acknowledges();
    other.acknowledges();
    const reportedObjects: string[] = [];
    for (let round = 0; round < 200 && reportedObjects.length < hosts.length; round++)
      reportedObjects.push(...(await world.evaluate()));
    expect(reportedObjects.sort()).toEqual(hosts.map((host) => `VirtualService/shop/${host}`).sort());
  });

  it('affects only workloads that it selects', async () => {
    const selectedProxy = world.connect('special');
    selectedProxy.acknowledges();
    world.apply(...services, filter('a', 1, 'cart', 'shop', 'special'));
    await world.evaluate();
    expect(world.findings('EnvoyFilter/shop/a').distribution).toEqual({ generation: 1, upToDate: 0, concerned: 1 });
  });

  it('is tracked through its services if it is a ServiceEntry', async () => {
    world.apply(entry('cart', 2, 8080), entry('user'));
    await world.evaluate();
    expect(world.findings('ServiceEntry/shop/cart').distribution).toMatchObject({ generation: 2, concerned: 2 });
    one.acknowledges();
    other.acknowledges();
    expect(await world.evaluate()).toEqual(['ServiceEntry/shop/cart']);
  });

  it('counts as acknowledged immediately if only its generation changed', async () => {
    world.apply(...services, route('cart', 1));
    one.acknowledges();
    other.acknowledges();
    await world.evaluate();
    world.apply(...services, route('cart', 2, 1));
    expect(await world.evaluate()).toEqual(['VirtualService/shop/cart']);
    expect(world.conditions('VirtualService/shop/cart')).toEqual(['Reconciled True 2: 2/2 proxies up to date']);
  });

  it('is reported again if it is deleted and immediately recreated', async () => {
    const routeWithUid = (uid: string): string => route('cart', 1).replace('namespace', `uid: ${uid}, namespace`);
    world.apply(...services, routeWithUid('a'));
    one.acknowledges();
    one.rejects(routeType, 'route 80: no');
    await world.evaluate();
    world.statuses.delete('VirtualService/shop/cart');
    world.apply(...services, routeWithUid('b'));
    expect(await world.evaluate()).toEqual(['VirtualService/shop/cart']);
  });

  it('is not reported if it is deleted before all proxies have it', async () => {
    world.apply(...services, route('cart', 1));
    await world.evaluate();
    world.apply(...services);
    world.now += 20_000;
    expect(await world.evaluate()).toEqual([]);
    expect(world.findings('VirtualService/shop/cart')).toEqual({});
  });
});

describe('a rejection by Envoy', () => {
  it('is reported immediately at its cause, and removed when the cause is corrected', async () => {
    world.apply(...services, filter('bad', 1, 'cart'), filter('good', 1, 'user'));
    one.rejects(clusterType, reason);
    other.rejects(clusterType, reason);
    for (const client of [one, other]) client.acknowledges(endpointType, listenerType, routeType);
    expect(await world.evaluate()).toEqual([badFilter]);
    expect(world.conditions(badFilter)).toEqual([
      'Reconciled False 1: 0/2 proxies up to date',
      `Rejected True 1: 2 of 2 proxies reject cluster ${cart}: ${reason}`,
    ]);
    expect(world.conditions('ServiceEntry/shop/cart')).not.toContainEqual(expect.stringContaining('Rejected'));
    world.apply(...services, filter('bad', 2, 'cart'), filter('good', 1, 'user'));
    one.acknowledges();
    other.acknowledges();
    expect(await world.evaluate()).toContain(badFilter);
    expect(world.conditions(badFilter)).toEqual(['Reconciled True 2: 2/2 proxies up to date']);
  });

  it('remains reported while the proxies that sent it are disconnected', async () => {
    world.apply(...services, filter('bad', 1, 'cart'));
    one.rejects(clusterType, reason);
    other.rejects(clusterType, reason);
    await world.evaluate();
    one.node.close();
    other.node.close();
    world.now += 60_000;
    expect(await world.evaluate()).toEqual([]);
    expect(world.conditions(badFilter)[1]).toContain('Rejected True 1: 2 of 2');
    const back = world.connect();
    back.acknowledges();
    expect(await world.evaluate()).toEqual([badFilter]);
    expect(world.conditions(badFilter)).toEqual(['Reconciled True 1: 1/1 proxies up to date']);
  });

  it('remains attributed to the object that was rejected before, regardless of other changes', async () => {
    world.apply(...services, filter('bad', 1, 'cart'));
    one.rejects(clusterType, reason);
    await world.evaluate();
    world.apply(...services, filter('bad', 1, 'cart'), filter('good', 1, 'cart'));
    one.rejects(clusterType, reason);
    await world.evaluate();
    expect(world.conditions('EnvoyFilter/shop/good').join()).not.toContain('Rejected');
  });

  it('is attributed to the EnvoyFilter, not to validated objects, if a new proxy sends it', async () => {
    world.apply(...services, filter('bad', 1, 'cart'));
    one.acknowledges();
    other.acknowledges();
    await world.evaluate();
    const newProxy = world.connect();
    newProxy.rejects(clusterType, reason);
    expect(await world.evaluate()).toEqual([badFilter]);
    expect(world.conditions(badFilter)[1]).toContain('1 of 3 proxies reject');
  });

  it('marks a proxy as outdated, even if all proxies had acknowledged the object', async () => {
    world.apply(...services, filter('bad', 1, 'cart'));
    one.acknowledges();
    other.acknowledges();
    await world.evaluate();
    expect(world.conditions(badFilter)).toEqual(['Reconciled True 1: 2/2 proxies up to date']);
    world.connect().rejects(clusterType, reason);
    await world.evaluate();
    expect(world.conditions(badFilter)[0]).toBe('Reconciled False 1: 2/3 proxies up to date');
    expect(JSON.parse(world.distribution.report()).counts[badFilter]).toEqual([1, 2, 3]);
  });

  it('is attributed to the changes since the last ACK if it names no resource', async () => {
    world.apply(...services, route('cart', 1));
    one.rejects(routeType, 'Only unique values for domains are permitted');
    await world.evaluate();
    expect(world.conditions('VirtualService/shop/cart')[1]).toContain(
      '1 of 2 proxies reject route configuration 80: Only unique',
    );
  });

  it('is attributed to no object if it names no resource and a new proxy sends it', async () => {
    const newProxy = world.connect();
    newProxy.rejects(clusterType, 'no');
    expect(await world.evaluate()).toEqual([]);
  });
});

describe('an object whose status another replica changes', () => {
  const key = 'VirtualService/shop/cart';

  it('is reported again, even if it is no longer tracked', async () => {
    world.apply(...services, route('cart', 1));
    world.distribution.repeatReport(key);
    expect(await world.evaluate()).toEqual([key]);
    expect(world.conditions(key)).toEqual(['Reconciled False 1: 0/2 proxies up to date']);
    one.acknowledges();
    other.acknowledges();
    expect(await world.evaluate()).toEqual([key]);
    world.distribution.repeatReport(key);
    expect(await world.evaluate()).toEqual([key]);
    const nextWorld = new World();
    nextWorld.statuses.set(key, new Map([['Reconciled', { status: 'True', observedGeneration: 1 }]]));
    nextWorld.apply(...services, route('cart', 1));
    nextWorld.connect().acknowledges();
    await nextWorld.evaluate();
    expect(nextWorld.conditions(key)).toEqual([]);
    nextWorld.distribution.repeatReport(key);
    expect(await nextWorld.evaluate()).toEqual([key]);
    expect(nextWorld.conditions(key)).toEqual(['Reconciled True 1: 1/1 proxies up to date']);
  });

  it('is counted again if it was complete, because the other replica can have proxies without the object', async () => {
    world.apply(...services, route('cart', 1));
    one.acknowledges();
    other.acknowledges();
    await world.evaluate();
    world.now += 60_000;
    await world.evaluate();
    world.otherReplicas.readAt = world.now;
    world.distribution.repeatReport(key);
    expect(world.conditions(key)).toEqual(['Reconciled True 1: 2/2 proxies up to date']);
    world.otherReplicas.counts = { ...noOtherCounts, upToDate: 0, concerned: 1 };
    expect(await world.evaluate()).toEqual([key]);
    world.now += 10_000;
    expect(await world.evaluate()).toEqual([key]);
    expect(world.conditions(key)).toEqual(['Reconciled False 1: 2/3 proxies up to date']);
  });

  it('is written at a limited rate if the status changes repeatedly', async () => {
    world.urgent = 0;
    for (let round = 0; round < 50; round++) {
      world.distribution.repeatReport('ServiceEntry/shop/cart');
      await world.evaluate();
      world.now += 200;
    }
    // One of the four urgent updates was used when the object was added.
    expect(world.urgent).toBe(3);
    world.distribution.repeatReport('VirtualService/shop/none');
    await world.evaluate();
    expect(world.conditions('VirtualService/shop/none')).toEqual([]);
  });
});

describe('hostile proxies', () => {
  it('occupy one entry for each type, however many NACKs they send', async () => {
    world.apply(...services, filter('bad', 1, 'cart'));
    for (let round = 0; round < 1_000; round++) one.rejects(clusterType, `${cart}: ${round} ${'x'.repeat(2_000)}`);
    expect(await world.evaluate()).toEqual([badFilter]);
    expect(world.generations).toBe(1);
    const [, rejectedText] = world.conditions(badFilter);
    expect(rejectedText!.length).toBeLessThan(700);
  });

  it('cause few writes, even if they change their error text often', async () => {
    world.apply(...services, filter('bad', 1, 'cart'));
    let writes = 0;
    for (let round = 0; round < 100; round++) {
      one.rejects(clusterType, `${cart}: ${round}`);
      writes += (await world.evaluate()).length;
      world.now += 100;
    }
    expect(writes).toBeLessThanOrEqual(2);
  });

  it('cause few writes, even if they connect, reject and disconnect repeatedly', async () => {
    world.apply(...services, filter('bad', 1, 'cart'));
    one.acknowledges();
    other.acknowledges();
    await world.evaluate();
    world.urgent = 0;
    for (let round = 0; round < 50; round++) {
      const hostile = world.connect();
      hostile.rejects(clusterType, reason);
      await world.evaluate();
      hostile.node.close();
      await world.evaluate();
      world.now += 200;
    }
    expect(world.urgent).toBeLessThanOrEqual(4);
  });

  it('cannot add names or control characters to a status', async () => {
    world.apply(...services, filter('bad', 1, 'cart'));
    one.rejects(clusterType, `Error adding/updating cluster(s) evil-name, ${cart}: \u001b[31m red\nline\u202e`);
    await world.evaluate();
    expect(world.conditions(badFilter)[1]).toBe(
      `Rejected True 1: 1 of 2 proxies reject cluster ${cart}: Error adding/updating cluster(s) evil-name, ${cart}: \\x1b[31m red\\nline\\u202e`,
    );
  });
});

describe('an invalid object', () => {
  const key = 'VirtualService/shop/cart';

  it('is reported immediately, and again when it becomes valid', async () => {
    world.apply(...services, route('cart', 1));
    one.acknowledges();
    other.acknowledges();
    await world.evaluate();
    world.setError(key, { generation: 2, text: 'spec.http[0].timeout: must be a duration' });
    expect(await world.evaluate()).toEqual([key]);
    expect(world.conditions(key)).toEqual([
      'Reconciled False 2: The object does not apply; its last valid version applies, if there was one.',
      'Invalid True 2: spec.http[0].timeout: must be a duration',
    ]);
    world.setError(key, undefined);
    world.apply(...services, route('cart', 3, 1));
    expect(await world.evaluate()).toEqual([key]);
    expect(world.conditions(key)).toEqual(['Reconciled True 3: 2/2 proxies up to date']);
  });
});

describe('a control plane after start', () => {
  it('reports no object whose status is current, and reports others when a proxy has them', async () => {
    const nextWorld = new World();
    nextWorld.statuses.set(
      'VirtualService/shop/cart',
      new Map([['Reconciled', { status: 'True', observedGeneration: 1 }]]),
    );
    nextWorld.statuses.set(
      'VirtualService/shop/user',
      new Map([['Reconciled', { status: 'False', observedGeneration: 1 }]]),
    );
    nextWorld.apply(...services, route('cart', 1), route('user', 1));
    expect(await nextWorld.evaluate()).toEqual([]);
    const client = nextWorld.connect();
    client.acknowledges();
    expect(await nextWorld.evaluate()).toEqual([
      'ServiceEntry/shop/cart',
      'ServiceEntry/shop/user',
      'VirtualService/shop/user',
    ]);
  });

  it('attributes a NACK to an object whose status contains a rejection', async () => {
    const nextWorld = new World();
    nextWorld.statuses.set(
      'VirtualService/shop/cart',
      new Map([['Rejected', { status: 'True', observedGeneration: 1 }]]),
    );
    nextWorld.apply(...services, route('cart', 1));
    nextWorld.connect().rejects(routeType, 'it names nothing');
    await nextWorld.evaluate();
    expect(nextWorld.conditions('VirtualService/shop/cart')[1]).toContain(
      'Rejected True 1: 1 of 1 proxy rejects route',
    );
  });
});

describe('an object that takes effect only partly', () => {
  const cartEntry = 'ServiceEntry/shop/cart';
  const warning = { generation: 1, reason: 'HostNameEndpoints', text: 'vm.internal is a host name' };
  const partial = 'PartiallyInvalid True 1: vm.internal is a host name';

  it('is reported once, and again when it takes full effect', async () => {
    world.distribution.setWarnings(new Map([[cartEntry, warning]]));
    expect(await world.evaluate()).toContain(cartEntry);
    expect(world.conditions(cartEntry)).toContain(partial);
    world.distribution.setWarnings(new Map([[cartEntry, { ...warning }]]));
    expect(await world.evaluate()).not.toContain(cartEntry);
    world.distribution.setWarnings(new Map());
    expect(await world.evaluate()).toContain(cartEntry);
    expect(world.findings(cartEntry)).toMatchObject({ warning: 'none', generation: 1 });
  });

  it('has the warning in addition to its distribution status', async () => {
    world.distribution.setWarnings(new Map([[cartEntry, warning]]));
    await world.evaluate();
    world.apply(entry('cart', 2, 81), services[1]!);
    one.acknowledges();
    other.acknowledges();
    await world.evaluate();
    expect(world.conditions(cartEntry)).toEqual([partial, 'Reconciled True 2: 2/2 proxies up to date']);
  });

  it('has no conditions before its proxies are known, and no warning before the first diagnostics', () => {
    expect(decidedConditions({ generation: 1, warning })).toEqual(['PartiallyInvalid']);
    expect(decidedConditions({ generation: 1 })).toEqual([]);
    const distribution = { generation: 1, upToDate: 1, concerned: 1 };
    expect(decidedConditions({ distribution })).toEqual(['Reconciled', 'Rejected', 'Invalid']);
  });
});

describe('an object without proxies on this replica', () => {
  const key = 'EnvoyFilter/shop/a';
  const absentReplica = 'istiod-b_22222222';

  /** The proxies moved to another replica, and then the object changed. */
  async function moveProxies(counts: OtherCounts | undefined): Promise<void> {
    world.apply(...services, filter('a', 1, 'cart'));
    one.acknowledges();
    other.acknowledges();
    await world.evaluate();
    world.statuses.set(key, new Map([['Reconciled', { status: 'True', observedGeneration: 1 }]]));
    one.node.close();
    other.node.close();
    world.otherReplicas.counts = counts;
    world.now += 60_000;
    world.apply(...services, filter('a', 2, 'cart'));
    await world.evaluate();
    world.now += 10_000;
  }

  const from = (counts: Partial<OtherCounts>): OtherCounts => ({ ...noOtherCounts, ...counts });

  it.each([
    ['unreported', 'unreportedReplicas'],
    ['uncounted', 'uncountedReplicas'],
  ])('is Unknown while an %s replica can have proxies for it', async (_, field) => {
    await moveProxies(from({ [field]: [absentReplica] }));
    expect(await world.evaluate()).toEqual([key]);
    expect(world.conditions(key)).toEqual([
      `Reconciled Unknown 2: 0/0 proxies up to date; replicas ${absentReplica} have not reported yet`,
    ]);
    expect(conditionsOf(world.findings(key))[0]).toMatchObject({ reason: 'ReplicaNotReporting' });
  });

  it('is True when no other replica remains', async () => {
    await moveProxies(from({ uncountedReplicas: [absentReplica] }));
    await world.evaluate();
    world.otherReplicas.counts = noOtherCounts;
    expect(await world.evaluate()).toEqual([key]);
    expect(world.conditions(key)).toEqual(['Reconciled True 2: 0/0 proxies up to date']);
  });

  it('is True when a proxy of the other replica has reconnected and acknowledged it', async () => {
    await moveProxies(from({ uncountedReplicas: [absentReplica] }));
    await world.evaluate();
    world.connect().acknowledges();
    expect(await world.evaluate()).toEqual([key]);
    expect(world.conditions(key)).toEqual(['Reconciled True 2: 1/1 proxies up to date']);
  });

  it('is False while a proxy of another replica has not acknowledged it', async () => {
    await moveProxies(from({ upToDate: 2, concerned: 3 }));
    expect(await world.evaluate()).toEqual([key]);
    expect(world.conditions(key)).toEqual(['Reconciled False 2: 2/3 proxies up to date']);
    world.otherReplicas.counts = from({ upToDate: 3, concerned: 3 });
    expect(await world.evaluate()).toEqual([key]);
    expect(world.conditions(key)).toEqual(['Reconciled True 2: 3/3 proxies up to date']);
  });

  it("is counted with this replica's proxies, and is not True while a running replica has not reported", async () => {
    await moveProxies(from({ upToDate: 2, concerned: 2, unreportedReplicas: [absentReplica] }));
    world.connect().acknowledges();
    expect(await world.evaluate()).toEqual([key]);
    expect(world.conditions(key)).toEqual([
      `Reconciled Unknown 2: 3/3 proxies up to date; replicas ${absentReplica} have not reported yet`,
    ]);
    world.otherReplicas.counts = from({ upToDate: 4, concerned: 4 });
    expect(await world.evaluate()).toEqual([key]);
    expect(world.conditions(key)).toEqual(['Reconciled True 2: 5/5 proxies up to date']);
  });

  it('is reported by this replica, even if it affects only proxies of other replicas', async () => {
    world.apply(...services);
    await world.evaluate();
    world.otherReplicas.counts = from({ unreportedReplicas: [absentReplica] });
    world.now += 60_000;
    world.apply(...services, filter('b', 1, 'cart', 'far'));
    expect(await world.evaluate()).toEqual([]);
    world.otherReplicas.counts = from({ upToDate: 1, concerned: 1 });
    expect(await world.evaluate()).toEqual(['EnvoyFilter/far/b']);
    expect(world.conditions('EnvoyFilter/far/b')).toEqual(['Reconciled True 1: 1/1 proxies up to date']);
  });

  it('keeps its status while the other replicas are unknown', async () => {
    await moveProxies(undefined);
    expect(await world.evaluate()).toEqual([]);
  });

  it('is counted in the report of a follower until its status states that all proxies have it', async () => {
    world.otherReplicas.isWriter = false;
    world.otherReplicas.counts = from({ unreportedReplicas: [absentReplica] });
    world.apply(...services);
    await world.evaluate();
    world.apply(...services, filter('a', 1, 'cart'));
    await world.evaluate();
    const reportedCounts = () => JSON.parse(world.distribution.report()).counts[key];
    expect(reportedCounts()).toEqual([1, 0, 2]);
    one.acknowledges();
    other.acknowledges();
    await world.evaluate();
    world.statuses.set(key, new Map([['Reconciled', { status: 'Unknown', observedGeneration: 1 }]]));
    world.now += 3_600_000;
    expect(reportedCounts()).toEqual([1, 2, 2]);
    world.statuses.set(key, new Map([['Reconciled', { status: 'True', observedGeneration: 1 }]]));
    expect(reportedCounts()).toBeUndefined();
  });

  it('is counted again with the proxies of other replicas when this replica becomes the leader', async () => {
    await moveProxies(from({ uncountedReplicas: [absentReplica] }));
    world.otherReplicas.isWriter = false;
    world.apply(...services, filter('a', 3, 'cart'));
    expect(await world.evaluate()).toEqual([key]);
    expect(world.findings(key).distribution).toEqual({ generation: 3, upToDate: 0, concerned: 0, isOwnOnly: true });
    world.otherReplicas.isWriter = true;
    world.distribution.compareAllStatuses();
    await world.evaluate();
    world.now += 10_000;
    expect(await world.evaluate()).toEqual([key]);
    expect(world.conditions(key)).toEqual([
      `Reconciled Unknown 3: 0/0 proxies up to date; replicas ${absentReplica} have not reported yet`,
    ]);
  });

  it("is counted again by a follower if the status lacks the follower's counts", async () => {
    world.otherReplicas.isWriter = false;
    world.apply(...services, filter('a', 1, 'cart'));
    one.acknowledges();
    other.acknowledges();
    await world.evaluate();
    world.now += 3_600_000;
    const reportedCounts = () => JSON.parse(world.distribution.report()).counts[key];
    expect(reportedCounts()).toBeUndefined();
    world.distribution.recount(key);
    await world.evaluate();
    expect(reportedCounts()).toEqual([1, 2, 2]);
  });

  it('keeps its status until the Leases are listed after the object has changed', async () => {
    await moveProxies(undefined);
    world.otherReplicas.counts = from({ upToDate: 1, concerned: 1 });
    world.otherReplicas.readAt = world.now - 10_001;
    expect(await world.evaluate()).toEqual([]);
    world.otherReplicas.readAt = world.now - 10_000;
    expect(await world.evaluate()).toEqual([key]);
  });

  it('becomes pending again if a new replica reports a proxy without it', async () => {
    await moveProxies(undefined);
    world.otherReplicas.counts = from({ upToDate: 1, concerned: 1 });
    world.otherReplicas.readAt = world.now;
    const result = await world.distribution.evaluate();
    expect(world.conditions(key)).toEqual(['Reconciled True 2: 1/1 proxies up to date']);
    expect(result.unfinished).toBeGreaterThan(0);
    world.otherReplicas.readAt = world.now + 10_000;
    world.otherReplicas.reportedIncomplete = [[key, 2]];
    world.otherReplicas.counts = from({ upToDate: 1, concerned: 2 });
    await world.evaluate();
    world.now += 10_000;
    await world.evaluate();
    expect(world.conditions(key)).toEqual(['Reconciled False 2: 1/2 proxies up to date']);
  });
});
