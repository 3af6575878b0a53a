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
import { conditionsOf, decidedConditions, type Mistake, type ObjectVerdict } from './object-verdict.ts';
import type { OtherCounts } from './replica-report.ts';
import type { ToldStatus } from './status-objects.ts';

const noOthers: OtherCounts = { upToDate: 0, concerned: 0, unreported: [], uncounted: [] };

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

/** What a client does with what it is sent. */
class Client {
  readonly node: MeshNode;
  watches: Watches = {};
  #nonce = 0;

  constructor(node: MeshNode) {
    this.node = node;
    node.watched(() => this.watches);
    for (const typeUrl of types) this.#sent(typeUrl);
  }

  #sent(typeUrl: string): void {
    const before = this.watches[typeUrl];
    const names = typeUrl === routeType ? ['80'] : typeUrl === endpointType ? [cart] : [];
    const watch: Watch = {
      ...{ wildcard: names.length === 0, names, due: { all: false, asked: [], changed: false }, ordered: 'nothing' },
      ...{ nonceAcked: '', nonceRejected: '', nonceOverdue: '', versionAcked: '', lastError: '', sentAt: 1 },
      ...before,
      ...{ nonceSent: `${++this.#nonce}`, versionSent: this.node.context.version },
    };
    this.watches = { ...this.watches, [typeUrl]: watch };
  }

  /** It is brought to the newest context, and sent what may be another by that. */
  pushed(changed: ReadonlySet<string>, forced = false): void {
    const version = 'of no matter';
    for (const typeUrl of this.node.typesToPush({ version, forced, configs: changed }, types)) this.#sent(typeUrl);
  }

  acknowledges(...some: readonly string[]): void {
    for (const typeUrl of some.length === 0 ? types : some) {
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

/** A mesh whose objects a test writes, and what is known of their distribution. */
class World {
  now = 100_000;
  made = 0;
  readonly told: string[] = [];
  urgent = 0;
  readonly statuses = new Map<string, ToldStatus['conditions']>();
  readonly cache = new EncodedCache({ maxEntries: 1_000 });
  readonly directory = { snapshot: ConfigSnapshot.empty };
  readonly state = new MeshState({
    ...{ settings: new SettingsFiles(() => {}), directory: this.directory as never },
    ...{ domain: 'cluster.local', clusterId: 'Kubernetes' },
  });
  readonly resources: MeshResources = new MeshResources({
    context: () => this.state.context,
    cache: this.cache,
    rejections: {
      rejected: (node, typeUrl) => this.distribution.rejected(node, typeUrl),
      accepted: (node, typeUrl) => this.distribution.accepted(node, typeUrl),
      left: (node) => this.distribution.left(node),
    },
  });
  refused: (key: string, mistake: Mistake | undefined) => void = () => {};
  readonly clients: Client[] = [];
  /** Replicas whose proxies this one does not see. */
  readonly others = {
    look: async () => {},
    isWriter: true,
    readAt: Number.POSITIVE_INFINITY,
    reportedIncomplete: [] as (readonly [string, number])[],
    incomplete(): readonly (readonly [string, number])[] {
      return this.reportedIncomplete;
    },
    counts: noOthers as OtherCounts | undefined,
    countsOf(_key: string, _generation: number, since: number): OtherCounts | undefined {
      return this.readAt < since ? undefined : this.counts;
    },
  };
  readonly distribution = new ObjectDistribution({
    objects: {
      toldOf: (key) =>
        this.directory.snapshot.byKey.has(key) ? { conditions: this.statuses.get(key) ?? new Map() } : undefined,
      onMistakes: (listener) => {
        this.refused = listener;
      },
    },
    configs: () => this.directory.snapshot,
    proxies: () => this.resources.nodes,
    made: (...question) => {
      this.made++;
      return this.cache.made(...question);
    },
    others: this.others,
    now: () => this.now,
  });

  constructor() {
    this.state.onPublished((published) => {
      this.resources.published(published);
      this.distribution.published(published);
    });
    this.distribution.onDue((keys, urgent) => {
      this.told.push(...keys);
      if (urgent) this.urgent += keys.length;
    });
  }

  /** The cluster has these now. Clients are brought there, and have not answered. */
  apply(...documents: string[]): void {
    const before = this.directory.snapshot;
    const { configs, problems } = readConfigFile('mesh.yaml', documents.join('---'), { creationTimestamp: 0 });
    expect(problems).toEqual([]);
    this.directory.snapshot = new ConfigSnapshot(configs);
    const changes = this.directory.snapshot.changesSince(before).map(({ key }) => key);
    const keys = configs.map((config) => configKeyText(config));
    const touched = keys.filter(
      (key) => versionOf(before.byKey.get(key)) !== versionOf(this.directory.snapshot.byKey.get(key)),
    );
    this.distribution.joined([...changes, ...touched], new Set(changes));
    const { changedServices, changedEndpoints } = this.state.computeServices();
    const forced = this.state.context === undefined;
    const others = changes.filter((key) => !key.startsWith('ServiceEntry/'));
    const changed = [...others, ...changedServices, ...changedEndpoints];
    if (changed.length === 0 && !forced) return;
    this.state.publishContext({ forced, changed });
    for (const client of this.clients) client.pushed(new Set(changed), forced);
  }

  connect(app = 'web', namespace = 'shop'): Client {
    const index = this.clients.length + 1;
    const id = `sidecar~10.0.0.${index}~${app}-${index}.${namespace}~${namespace}.svc.cluster.local`;
    const metadata = { NAMESPACE: namespace, INTERCEPTION_MODE: 'NONE', LABELS: { app } };
    const opened = this.resources.open({ id, cluster: app, metadata });
    if ('error' in opened) throw new Error(opened.error);
    const client = new Client(opened.resources as MeshNode);
    this.clients.push(client);
    return client;
  }

  /** @returns what is to be written */
  async look(): Promise<string[]> {
    this.told.length = 0;
    await this.distribution.look();
    return [...this.told].sort();
  }

  /** What the status of an object is to say, in short. */
  says(key: string): string[] {
    const conditions = conditionsOf(this.distribution.verdictOf(key));
    return conditions.map(
      ({ type, status, message, observedGeneration }) => `${type} ${status} ${observedGeneration}: ${message}`,
    );
  }

  verdict(key: string): ObjectVerdict {
    return this.distribution.verdictOf(key);
  }
}

const versionOf = (config: Config | undefined): string => `${config?.generation} ${config?.uid}`;

let world: World;
let one: Client;
let other: Client;

const services = [entry('cart'), entry('user')];
const badFilter = 'EnvoyFilter/shop/bad';
const reason = `Error adding/updating cluster(s) ${cart}: it will not do`;

/** All is acknowledged, and nothing is left to tell. */
beforeEach(async () => {
  world = new World();
  world.apply(...services);
  one = world.connect();
  other = world.connect();
  one.acknowledges();
  other.acknowledges();
  await world.look();
});

describe('an object that changes', () => {
  it('is told of when all proxies that it concerns have acknowledged it, and not before', async () => {
    const far = world.connect('web', 'elsewhere');
    far.acknowledges();
    world.apply(...services, filter('a', 1, 'cart'));
    expect(await world.look()).toEqual([]);
    one.acknowledges();
    expect(await world.look()).toEqual([]);
    other.acknowledges();
    expect(await world.look()).toEqual(['EnvoyFilter/shop/a']);
    expect(world.says('EnvoyFilter/shop/a')).toEqual(['Reconciled True 1: 2/2 proxies up to date']);
    expect(await world.look()).toEqual([]);
  });

  it('is told of in between once in ten seconds, where its number is another', async () => {
    world.apply(...services, route('cart', 1));
    await world.look();
    world.now += 9_999;
    expect(await world.look()).toEqual([]);
    world.now += 1;
    expect(await world.look()).toEqual(['VirtualService/shop/cart']);
    expect(world.says('VirtualService/shop/cart')).toEqual(['Reconciled False 1: 0/2 proxies up to date']);
    one.acknowledges();
    world.now += 5_000;
    expect(await world.look()).toEqual([]);
    world.now += 5_000;
    expect(await world.look()).toEqual(['VirtualService/shop/cart']);
    world.now += 60_000;
    expect(await world.look()).toEqual([]);
  });

  it('is up to date by a later version, and not by an earlier one that is acknowledged late', async () => {
    world.apply(...services, route('cart', 1));
    const sent = one.watches;
    world.apply(...services, route('cart', 2));
    other.acknowledges();
    // The last word on the version before; the one after it is on its way.
    one.watches = {
      ...one.watches,
      [routeType]: {
        ...one.watches[routeType]!,
        nonceAcked: sent[routeType]!.nonceSent,
        versionAcked: sent[routeType]!.versionSent,
      },
    };
    await world.look();
    expect(world.verdict('VirtualService/shop/cart').distribution).toEqual({
      generation: 2,
      upToDate: 1,
      concerned: 2,
    });
    one.acknowledges();
    expect(await world.look()).toEqual(['VirtualService/shop/cart']);
  });

  it('among many that do, as when a mesh is installed, is told of in its turn', async () => {
    const hosts = Array.from({ length: 200 }, (_, index) => `host-${index}`);
    world.apply(...services, ...hosts.map((host) => route(host, 1)));
    one.acknowledges();
    other.acknowledges();
    const told: string[] = [];
    for (let look = 0; look < 200 && told.length < hosts.length; look++) told.push(...(await world.look()));
    expect(told.sort()).toEqual(hosts.map((host) => `VirtualService/shop/${host}`).sort());
  });

  it('concerns the workloads that it selects', async () => {
    const selected = world.connect('special');
    selected.acknowledges();
    world.apply(...services, filter('a', 1, 'cart', 'shop', 'special'));
    await world.look();
    expect(world.verdict('EnvoyFilter/shop/a').distribution).toEqual({ generation: 1, upToDate: 0, concerned: 1 });
  });

  it('is known by its services where it is a ServiceEntry', async () => {
    world.apply(entry('cart', 2, 8080), entry('user'));
    await world.look();
    expect(world.verdict('ServiceEntry/shop/cart').distribution).toMatchObject({ generation: 2, concerned: 2 });
    one.acknowledges();
    other.acknowledges();
    expect(await world.look()).toEqual(['ServiceEntry/shop/cart']);
  });

  it('in nothing but its generation is up to date as it is', async () => {
    world.apply(...services, route('cart', 1));
    one.acknowledges();
    other.acknowledges();
    await world.look();
    world.apply(...services, route('cart', 2, 1));
    expect(await world.look()).toEqual(['VirtualService/shop/cart']);
    expect(world.says('VirtualService/shop/cart')).toEqual(['Reconciled True 2: 2/2 proxies up to date']);
  });

  it('and was deleted and made again in one moment is told of anew', async () => {
    const named = (uid: string): string => route('cart', 1).replace('namespace', `uid: ${uid}, namespace`);
    world.apply(...services, named('a'));
    one.acknowledges();
    one.rejects(routeType, 'route 80: no');
    await world.look();
    world.statuses.delete('VirtualService/shop/cart');
    world.apply(...services, named('b'));
    expect(await world.look()).toEqual(['VirtualService/shop/cart']);
  });

  it('and is gone before all have it is not told of', async () => {
    world.apply(...services, route('cart', 1));
    await world.look();
    world.apply(...services);
    world.now += 20_000;
    expect(await world.look()).toEqual([]);
    expect(world.verdict('VirtualService/shop/cart')).toEqual({});
  });
});

describe('what Envoy rejects', () => {
  it('comes back to the object that led to it, at once, and goes when it is mended', async () => {
    world.apply(...services, filter('bad', 1, 'cart'), filter('good', 1, 'user'));
    one.rejects(clusterType, reason);
    other.rejects(clusterType, reason);
    for (const client of [one, other]) client.acknowledges(endpointType, listenerType, routeType);
    expect(await world.look()).toEqual([badFilter]);
    expect(world.says(badFilter)).toEqual([
      'Reconciled False 1: 0/2 proxies up to date',
      `Rejected True 1: 2 of 2 proxies reject cluster ${cart}: ${reason}`,
    ]);
    expect(world.says('ServiceEntry/shop/cart')).not.toContainEqual(expect.stringContaining('Rejected'));
    world.apply(...services, filter('bad', 2, 'cart'), filter('good', 1, 'user'));
    one.acknowledges();
    other.acknowledges();
    expect(await world.look()).toContain(badFilter);
    expect(world.says(badFilter)).toEqual(['Reconciled True 2: 2/2 proxies up to date']);
  });

  it('stays said while the proxies that rejected it are away', async () => {
    world.apply(...services, filter('bad', 1, 'cart'));
    one.rejects(clusterType, reason);
    other.rejects(clusterType, reason);
    await world.look();
    one.node.close();
    other.node.close();
    world.now += 60_000;
    expect(await world.look()).toEqual([]);
    expect(world.says(badFilter)[1]).toContain('Rejected True 1: 2 of 2');
    const back = world.connect();
    back.acknowledges();
    expect(await world.look()).toEqual([badFilter]);
    expect(world.says(badFilter)).toEqual(['Reconciled True 1: 1/1 proxies up to date']);
  });

  it('is of the object that was rejected before, whatever else changes meanwhile', async () => {
    world.apply(...services, filter('bad', 1, 'cart'));
    one.rejects(clusterType, reason);
    await world.look();
    world.apply(...services, filter('bad', 1, 'cart'), filter('good', 1, 'cart'));
    one.rejects(clusterType, reason);
    await world.look();
    expect(world.says('EnvoyFilter/shop/good').join()).not.toContain('Rejected');
  });

  it('by a proxy of which nothing is known is of the patch, and of nothing that was understood', async () => {
    world.apply(...services, filter('bad', 1, 'cart'));
    one.acknowledges();
    other.acknowledges();
    await world.look();
    const strange = world.connect();
    strange.rejects(clusterType, reason);
    expect(await world.look()).toEqual([badFilter]);
    expect(world.says(badFilter)[1]).toContain('1 of 3 proxies reject');
  });

  it('does not count a proxy that rejects it as up to date, though all had it before', async () => {
    world.apply(...services, filter('bad', 1, 'cart'));
    one.acknowledges();
    other.acknowledges();
    await world.look();
    expect(world.says(badFilter)).toEqual(['Reconciled True 1: 2/2 proxies up to date']);
    world.connect().rejects(clusterType, reason);
    await world.look();
    expect(world.says(badFilter)[0]).toBe('Reconciled False 1: 2/3 proxies up to date');
    expect(JSON.parse(world.distribution.report()).counts[badFilter]).toEqual([1, 2, 3]);
  });

  it('without a name is of what changed since', async () => {
    world.apply(...services, route('cart', 1));
    one.rejects(routeType, 'Only unique values for domains are permitted');
    await world.look();
    expect(world.says('VirtualService/shop/cart')[1]).toContain(
      '1 of 2 proxies reject route configuration 80: Only unique',
    );
  });

  it('without a name, by a proxy of which nothing is known, is of nobody', async () => {
    const strange = world.connect();
    strange.rejects(clusterType, 'no');
    expect(await world.look()).toEqual([]);
  });
});

describe('an object of which another replica says something else', () => {
  const key = 'VirtualService/shop/cart';

  it('is told of as it is, whether anything is known of it or not', async () => {
    world.apply(...services, route('cart', 1));
    world.distribution.reconsider(key);
    expect(await world.look()).toEqual([key]);
    expect(world.says(key)).toEqual(['Reconciled False 1: 0/2 proxies up to date']);
    one.acknowledges();
    other.acknowledges();
    expect(await world.look()).toEqual([key]);
    world.distribution.reconsider(key);
    expect(await world.look()).toEqual([key]);
    const again = new World();
    again.statuses.set(key, new Map([['Reconciled', { status: 'True', observedGeneration: 1 }]]));
    again.apply(...services, route('cart', 1));
    again.connect().acknowledges();
    await again.look();
    expect(again.says(key)).toEqual([]);
    again.distribution.reconsider(key);
    expect(await again.look()).toEqual([key]);
    expect(again.says(key)).toEqual(['Reconciled True 1: 1/1 proxies up to date']);
  });

  it('was complete, and is counted again, for the other replica may have proxies without it', async () => {
    world.apply(...services, route('cart', 1));
    one.acknowledges();
    other.acknowledges();
    await world.look();
    world.now += 60_000;
    await world.look();
    world.others.readAt = world.now;
    world.distribution.reconsider(key);
    expect(world.says(key)).toEqual(['Reconciled True 1: 2/2 proxies up to date']);
    world.others.counts = { ...noOthers, upToDate: 0, concerned: 1 };
    expect(await world.look()).toEqual([key]);
    world.now += 10_000;
    expect(await world.look()).toEqual([key]);
    expect(world.says(key)).toEqual(['Reconciled False 1: 2/3 proxies up to date']);
  });

  it('and again and again is not written of each time', async () => {
    world.urgent = 0;
    for (let round = 0; round < 50; round++) {
      world.distribution.reconsider('ServiceEntry/shop/cart');
      await world.look();
      world.now += 200;
    }
    // That it had come was one of four.
    expect(world.urgent).toBe(3);
    world.distribution.reconsider('VirtualService/shop/none');
    await world.look();
    expect(world.says('VirtualService/shop/none')).toEqual([]);
  });
});

describe('hostile proxies', () => {
  it('cost one thing kept for each type, however often and whatever they say', async () => {
    world.apply(...services, filter('bad', 1, 'cart'));
    for (let round = 0; round < 1_000; round++) one.rejects(clusterType, `${cart}: ${round} ${'x'.repeat(2_000)}`);
    expect(await world.look()).toEqual([badFilter]);
    expect(world.made).toBe(1);
    const [, rejected] = world.says(badFilter);
    expect(rejected!.length).toBeLessThan(700);
  });

  it('write at most now and then, whatever they say one after the other', async () => {
    world.apply(...services, filter('bad', 1, 'cart'));
    let writes = 0;
    for (let round = 0; round < 100; round++) {
      one.rejects(clusterType, `${cart}: ${round}`);
      writes += (await world.look()).length;
      world.now += 100;
    }
    expect(writes).toBeLessThanOrEqual(2);
  });

  it('that come, reject and go again and again are not written of each time', async () => {
    world.apply(...services, filter('bad', 1, 'cart'));
    one.acknowledges();
    other.acknowledges();
    await world.look();
    world.urgent = 0;
    for (let round = 0; round < 50; round++) {
      const hostile = world.connect();
      hostile.rejects(clusterType, reason);
      await world.look();
      hostile.node.close();
      await world.look();
      world.now += 200;
    }
    expect(world.urgent).toBeLessThanOrEqual(4);
  });

  it('name nothing but what we gave, in a line that is plain', async () => {
    world.apply(...services, filter('bad', 1, 'cart'));
    one.rejects(clusterType, `Error adding/updating cluster(s) evil-name, ${cart}: \u001b[31m red\nline\u202e`);
    await world.look();
    expect(world.says(badFilter)[1]).toBe(
      `Rejected True 1: 1 of 2 proxies reject cluster ${cart}: Error adding/updating cluster(s) evil-name, ${cart}: \\x1b[31m red\\nline\\u202e`,
    );
  });
});

describe('an object that is refused', () => {
  const key = 'VirtualService/shop/cart';

  it('is told of at once, and that it is in order again', async () => {
    world.apply(...services, route('cart', 1));
    one.acknowledges();
    other.acknowledges();
    await world.look();
    world.refused(key, { generation: 2, text: 'spec.http[0].timeout: must be a duration' });
    expect(await world.look()).toEqual([key]);
    expect(world.says(key)).toEqual([
      'Reconciled False 2: The object does not apply; its last valid version applies, if there was one.',
      'Invalid True 2: spec.http[0].timeout: must be a duration',
    ]);
    world.refused(key, undefined);
    world.apply(...services, route('cart', 3, 1));
    expect(await world.look()).toEqual([key]);
    expect(world.says(key)).toEqual(['Reconciled True 3: 2/2 proxies up to date']);
  });
});

describe('a control plane that begins', () => {
  it('tells of nothing that the status says already, and of what it does not say when a proxy has it', async () => {
    const again = new World();
    again.statuses.set(
      'VirtualService/shop/cart',
      new Map([['Reconciled', { status: 'True', observedGeneration: 1 }]]),
    );
    again.statuses.set(
      'VirtualService/shop/user',
      new Map([['Reconciled', { status: 'False', observedGeneration: 1 }]]),
    );
    again.apply(...services, route('cart', 1), route('user', 1));
    expect(await again.look()).toEqual([]);
    const client = again.connect();
    client.acknowledges();
    expect(await again.look()).toEqual([
      'ServiceEntry/shop/cart',
      'ServiceEntry/shop/user',
      'VirtualService/shop/user',
    ]);
  });

  it('believes what was rejected before', async () => {
    const again = new World();
    again.statuses.set('VirtualService/shop/cart', new Map([['Rejected', { status: 'True', observedGeneration: 1 }]]));
    again.apply(...services, route('cart', 1));
    again.connect().rejects(routeType, 'it names nothing');
    await again.look();
    expect(again.says('VirtualService/shop/cart')[1]).toContain('Rejected True 1: 1 of 1 proxy rejects route');
  });
});

describe('an object that takes effect only in part', () => {
  const cartEntry = 'ServiceEntry/shop/cart';
  const warning = { generation: 1, reason: 'HostNameEndpoints', text: 'vm.internal is a host name' };
  const partial = 'PartiallyInvalid True 1: vm.internal is a host name';

  it('is reported once, and again when that ends', async () => {
    world.distribution.warned(new Map([[cartEntry, warning]]));
    expect(await world.look()).toContain(cartEntry);
    expect(world.says(cartEntry)).toContain(partial);
    world.distribution.warned(new Map([[cartEntry, { ...warning }]]));
    expect(await world.look()).not.toContain(cartEntry);
    world.distribution.warned(new Map());
    expect(await world.look()).toContain(cartEntry);
    expect(world.verdict(cartEntry)).toMatchObject({ warning: 'none', generation: 1 });
  });

  it('has the warning beside what is known of its proxies', async () => {
    world.distribution.warned(new Map([[cartEntry, warning]]));
    await world.look();
    world.apply(entry('cart', 2, 81), services[1]!);
    one.acknowledges();
    other.acknowledges();
    await world.look();
    expect(world.says(cartEntry)).toEqual([partial, 'Reconciled True 2: 2/2 proxies up to date']);
  });

  it('decides about no other condition while nothing is known of its proxies, and about no warning before the first diagnostics', () => {
    expect(decidedConditions({ generation: 1, warning })).toEqual(['PartiallyInvalid']);
    expect(decidedConditions({ generation: 1 })).toEqual([]);
    const distribution = { generation: 1, upToDate: 1, concerned: 1 };
    expect(decidedConditions({ distribution })).toEqual(['Reconciled', 'Rejected', 'Invalid']);
  });
});

describe('an object of which this replica has no proxy', () => {
  const key = 'EnvoyFilter/shop/a';
  const absent = 'istiod-b_22222222';

  /** The proxies went to another replica, and the object changed. */
  async function withoutProxies(counts: OtherCounts | undefined): Promise<void> {
    world.apply(...services, filter('a', 1, 'cart'));
    one.acknowledges();
    other.acknowledges();
    await world.look();
    world.statuses.set(key, new Map([['Reconciled', { status: 'True', observedGeneration: 1 }]]));
    one.node.close();
    other.node.close();
    world.others.counts = counts;
    world.now += 60_000;
    world.apply(...services, filter('a', 2, 'cart'));
    await world.look();
    world.now += 10_000;
  }

  const from = (counts: Partial<OtherCounts>): OtherCounts => ({ ...noOthers, ...counts });

  it.each(['unreported', 'uncounted'])(
    'is Unknown while a replica of these may serve its proxies: %s',
    async (list) => {
      await withoutProxies(from({ [list]: [absent] }));
      expect(await world.look()).toEqual([key]);
      expect(world.says(key)).toEqual([
        `Reconciled Unknown 2: 0/0 proxies up to date; replicas ${absent} have not reported yet`,
      ]);
      expect(conditionsOf(world.verdict(key))[0]).toMatchObject({ reason: 'ReplicaNotReporting' });
    },
  );

  it('is True when no other replica is left', async () => {
    await withoutProxies(from({ uncounted: [absent] }));
    await world.look();
    world.others.counts = noOthers;
    expect(await world.look()).toEqual([key]);
    expect(world.says(key)).toEqual(['Reconciled True 2: 0/0 proxies up to date']);
  });

  it('is True when a proxy of the other replica has reconnected and acknowledged it', async () => {
    await withoutProxies(from({ uncounted: [absent] }));
    await world.look();
    world.connect().acknowledges();
    expect(await world.look()).toEqual([key]);
    expect(world.says(key)).toEqual(['Reconciled True 2: 1/1 proxies up to date']);
  });

  it('counts the proxies that other replicas report, and is False while one of them does not have it', async () => {
    await withoutProxies(from({ upToDate: 2, concerned: 3 }));
    expect(await world.look()).toEqual([key]);
    expect(world.says(key)).toEqual(['Reconciled False 2: 2/3 proxies up to date']);
    world.others.counts = from({ upToDate: 3, concerned: 3 });
    expect(await world.look()).toEqual([key]);
    expect(world.says(key)).toEqual(['Reconciled True 2: 3/3 proxies up to date']);
  });

  it('adds proxies of this replica, and is not True while a replica that runs has not reported', async () => {
    await withoutProxies(from({ upToDate: 2, concerned: 2, unreported: [absent] }));
    world.connect().acknowledges();
    expect(await world.look()).toEqual([key]);
    expect(world.says(key)).toEqual([
      `Reconciled Unknown 2: 3/3 proxies up to date; replicas ${absent} have not reported yet`,
    ]);
    world.others.counts = from({ upToDate: 4, concerned: 4 });
    expect(await world.look()).toEqual([key]);
    expect(world.says(key)).toEqual(['Reconciled True 2: 5/5 proxies up to date']);
  });

  it('of an object that only proxies of another replica have, it is written by this one', async () => {
    world.apply(...services);
    await world.look();
    world.others.counts = from({ unreported: [absent] });
    world.now += 60_000;
    world.apply(...services, filter('b', 1, 'cart', 'far'));
    expect(await world.look()).toEqual([]);
    world.others.counts = from({ upToDate: 1, concerned: 1 });
    expect(await world.look()).toEqual(['EnvoyFilter/far/b']);
    expect(world.says('EnvoyFilter/far/b')).toEqual(['Reconciled True 1: 1/1 proxies up to date']);
  });

  it('has no new status while it is not known which replicas there are', async () => {
    await withoutProxies(undefined);
    expect(await world.look()).toEqual([]);
  });

  it('is reported by a replica that does not write, with its own proxies, until the status says that all have it', async () => {
    world.others.isWriter = false;
    world.others.counts = from({ unreported: [absent] });
    world.apply(...services);
    await world.look();
    world.apply(...services, filter('a', 1, 'cart'));
    await world.look();
    const reported = () => JSON.parse(world.distribution.report()).counts[key];
    expect(reported()).toEqual([1, 0, 2]);
    one.acknowledges();
    other.acknowledges();
    await world.look();
    world.statuses.set(key, new Map([['Reconciled', { status: 'Unknown', observedGeneration: 1 }]]));
    world.now += 3_600_000;
    expect(reported()).toEqual([1, 2, 2]);
    world.statuses.set(key, new Map([['Reconciled', { status: 'True', observedGeneration: 1 }]]));
    expect(reported()).toBeUndefined();
  });

  it('is counted again with the proxies of other replicas by a replica that begins to write', async () => {
    await withoutProxies(from({ uncounted: [absent] }));
    world.others.isWriter = false;
    world.apply(...services, filter('a', 3, 'cart'));
    expect(await world.look()).toEqual([key]);
    expect(world.verdict(key).distribution).toEqual({ generation: 3, upToDate: 0, concerned: 0, isOwnOnly: true });
    world.others.isWriter = true;
    world.distribution.lookAtAll();
    await world.look();
    world.now += 10_000;
    expect(await world.look()).toEqual([key]);
    expect(world.says(key)).toEqual([
      `Reconciled Unknown 3: 0/0 proxies up to date; replicas ${absent} have not reported yet`,
    ]);
  });

  it('is counted again by a replica that does not write when its status lacks the counts', async () => {
    world.others.isWriter = false;
    world.apply(...services, filter('a', 1, 'cart'));
    one.acknowledges();
    other.acknowledges();
    await world.look();
    world.now += 3_600_000;
    const reported = () => JSON.parse(world.distribution.report()).counts[key];
    expect(reported()).toBeUndefined();
    world.distribution.recount(key);
    await world.look();
    expect(reported()).toEqual([1, 2, 2]);
  });

  it('has no new status while the Leases were not listed after it changed', async () => {
    await withoutProxies(undefined);
    world.others.counts = from({ upToDate: 1, concerned: 1 });
    world.others.readAt = world.now - 10_001;
    expect(await world.look()).toEqual([]);
    world.others.readAt = world.now - 10_000;
    expect(await world.look()).toEqual([key]);
  });

  it('was complete, and is pending again when a replica that had just started reports a proxy without it', async () => {
    await withoutProxies(undefined);
    world.others.counts = from({ upToDate: 1, concerned: 1 });
    world.others.readAt = world.now;
    const looked = await world.distribution.look();
    expect(world.says(key)).toEqual(['Reconciled True 2: 1/1 proxies up to date']);
    expect(looked.unfinished).toBeGreaterThan(0);
    world.others.readAt = world.now + 10_000;
    world.others.reportedIncomplete = [[key, 2]];
    world.others.counts = from({ upToDate: 1, concerned: 2 });
    await world.look();
    world.now += 10_000;
    await world.look();
    expect(world.says(key)).toEqual(['Reconciled False 2: 1/2 proxies up to date']);
  });
});
