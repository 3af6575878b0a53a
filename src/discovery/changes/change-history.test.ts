import { expect, it } from 'vitest';
import { readConfigFile } from '../../model/config/config-file.ts';
import { ConfigSnapshot } from '../config/snapshots/config-snapshot.ts';
import type { Publication } from '../push/contexts/mesh-state.ts';
import type { MeshNode } from '../push/mesh-resources.ts';
import { ChangeHistory } from './change-history.ts';
import { changesView } from './change-view.ts';

const [clusters, listeners] = ['type.googleapis.com/envoy.config.cluster.v3.Cluster', 'listeners'];
const settings = {};
const allChanges = { rejected: false, endpoints: true };

const [model] = readConfigFile(
  'mesh.yaml',
  'apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v, namespace: shop}\nspec: {hosts: [v.test], http: [{redirect: {uri: /}}]}\n',
  { creationTimestamp: 0 },
).configs;

function entries(count: number, suffix = ''): ConfigSnapshot {
  return new ConfigSnapshot(
    Array.from({ length: count }, (_, i) => ({
      ...model!,
      name: `v${i}`,
      resourceVersion: `${i}${suffix}`,
      spec: { hosts: [`h${i}${suffix}.test`], http: [{ redirect: { uri: '/' } }] },
    })),
  );
}

/** A history that receives publications and responses. */
class HistoryFixture {
  time = 1_000;
  readonly history: ChangeHistory;
  #count = 0;
  #previousContext: Publication['context'] | undefined;
  #appliedSnapshot = ConfigSnapshot.empty;

  constructor(limits?: ConstructorParameters<typeof ChangeHistory>[0]) {
    this.history = new ChangeHistory({ now: () => this.time, ...limits });
    this.push();
  }

  push(applied = this.#appliedSnapshot, changedKeys: readonly string[] = []): string {
    const version = `2026-11-29T14:05:00.000Z/${++this.#count}`;
    const context = { version, mesh: settings } as Publication['context'];
    const head = { previous: this.#previousContext, forced: false, changedKeys: new Set(changedKeys) };
    this.history.recordPublication({
      context,
      ...head,
      configs: applied,
      appliedConfigs: applied,
      objects: [...applied.differingKeys(this.#appliedSnapshot)],
    });
    this.#previousContext = context;
    this.#appliedSnapshot = applied;
    return version;
  }

  get views() {
    return changesView(this.history, () => [], allChanges).pushes;
  }

  get unpushedRejections() {
    return changesView(this.history, () => [], allChanges).unpushedRejections;
  }
}

function node(id: string, lastError = '', versionSent = '', connectVersion = 'earlier'): MeshNode {
  return { proxy: { id }, connectVersion, watches: { [clusters]: { lastError, versionSent } } } as unknown as MeshNode;
}

it('ChangeHistory counts each proxy once, however many resource types the proxy receives', () => {
  const publisher = new HistoryFixture();
  const version = publisher.push(entries(1));
  const proxies = [node('a'), node('b'), node('c')];
  for (const proxy of proxies) {
    publisher.history.onSent(proxy, clusters, version, 'push');
    publisher.history.onSent(proxy, listeners, version, 'push');
  }
  publisher.time += 500;
  for (const proxy of proxies.slice(0, 2)) publisher.history.onAcknowledged(proxy, clusters, version);
  publisher.history.onAcknowledged(proxies[0]!, listeners, version);
  expect(publisher.views.at(-1)).toMatchObject({
    proxies: { pushed: 3, acknowledged: 1, rejected: 0, pending: 2, unanswered: 0 },
    answeredMs: 500,
  });
  expect([...publisher.history.pendingAt(publisher.history.records.at(-1)!, proxies)]).toEqual(['b', 'c']);
  publisher.history.disconnected(proxies[2]!);
  publisher.history.onSent(proxies[1]!, clusters, publisher.push(entries(2)), 'push');
  expect(publisher.views.at(-2)).toMatchObject({ proxies: { acknowledged: 1, pending: 0, unanswered: 2 } });
});

it('ChangeHistory counts a proxy as pending again when another response follows an acknowledged one', () => {
  const publisher = new HistoryFixture();
  const version = publisher.push(entries(1));
  const proxy = node('a');
  publisher.history.onSent(proxy, clusters, version, 'push');
  publisher.history.onAcknowledged(proxy, clusters, version);
  publisher.history.onSent(proxy, listeners, version, 'push');
  expect(publisher.views.at(-1)).toMatchObject({ proxies: { pushed: 1, acknowledged: 0, pending: 1 } });
});

it('ChangeHistory does not count a late ACK of the previous response for the current push', () => {
  const publisher = new HistoryFixture();
  const earlierVersion = publisher.push(entries(1));
  const proxy = node('a');
  publisher.history.onSent(proxy, clusters, earlierVersion, 'push');
  publisher.history.onSent(proxy, clusters, publisher.push(entries(2)), 'push');
  publisher.history.onAcknowledged(proxy, clusters, earlierVersion);
  expect(publisher.views.at(-1)).toMatchObject({ proxies: { acknowledged: 0, pending: 1 } });
});

it('ChangeHistory attributes a rejection of the first response of a connection to no push', () => {
  const publisher = new HistoryFixture();
  const version = publisher.push(entries(1));
  const proxy = node('new', 'no such filter', version, version);
  publisher.history.onSent(node('other'), clusters, version, 'push');
  publisher.history.onSent(proxy, clusters, version, 'request');
  publisher.history.onRejected(proxy, clusters);
  expect(publisher.views.flatMap(({ rejections }) => rejections.items)).toEqual([]);
  expect(publisher.unpushedRejections).toMatchObject([
    { proxy: 'new', receivedOn: 'connect', reason: 'no such filter' },
  ]);
});

it('ChangeHistory attributes a rejection to the push that sent the response, even after a later push of another type', () => {
  const publisher = new HistoryFixture();
  const version = publisher.push(entries(1));
  const proxy = node('a', 'no such filter', version);
  publisher.history.onSent(proxy, clusters, version, 'push');
  publisher.history.onSent(proxy, listeners, publisher.push(entries(2)), 'push');
  publisher.history.onRejected(proxy, clusters);
  expect(publisher.views.map(({ rejections }) => rejections.items.length)).toEqual([0, 1, 0]);
  expect(publisher.unpushedRejections).toEqual([]);
});

it('ChangeHistory attributes a rejection of requested resources to the push that caused the request, or to no push if the client requested them itself', () => {
  const publisher = new HistoryFixture();
  const version = publisher.push(entries(1));
  const [caused, alone] = [node('caused', 'invalid', version), node('alone', 'invalid', version)];
  publisher.history.onSent(caused, listeners, version, 'push');
  for (const proxy of [caused, alone]) {
    publisher.history.onSent(proxy, clusters, version, 'request');
    publisher.history.onRejected(proxy, clusters);
  }
  expect(publisher.views.at(-1)!.rejections.items).toMatchObject([{ proxy: 'caused' }]);
  expect(publisher.unpushedRejections).toMatchObject([{ proxy: 'alone', receivedOn: 'request' }]);
});

it('ChangeHistory keeps the last rejection of each proxy and type that belongs to no push, within a limit', () => {
  const publisher = new HistoryFixture();
  const version = publisher.push(entries(1));
  for (let i = 0; i < 120; i++) publisher.history.onRejected(node(`proxy-${i}`, 'no', version, version), clusters);
  for (let i = 0; i < 120; i++) publisher.history.onRejected(node('proxy-119', `no ${i}`, version, version), clusters);
  const kept = publisher.unpushedRejections;
  expect([kept.length, kept[0]!.proxy, kept.at(-1)!.reason]).toEqual([100, 'proxy-20', 'no 119']);
});

it('ChangeHistory does not let one client evict the rejections of others that belong to no push', () => {
  const publisher = new HistoryFixture();
  const version = publisher.push(entries(1));
  const reject = (id: string, namespace: string, account: string, reason = 'no'): void => {
    const { proxy, ...client } = node(id, reason, version, version);
    const rejecting = {
      ...client,
      proxy: { ...proxy, configNamespace: namespace },
      account: `${namespace}/${account}`,
    };
    publisher.history.onRejected(rejecting as unknown as MeshNode, clusters);
  };
  const namesOf = (prefix: string) =>
    publisher.unpushedRejections.map(({ proxy }) => proxy).filter((proxy) => proxy.startsWith(prefix));
  reject('cart', 'shop', 'cart');
  reject('pay', 'bank', 'pay');
  for (let i = 0; i < 300; i++) reject(`hostile-${i}`, 'bank', 'hostile');
  expect([namesOf('pay'), namesOf('hostile').at(-1)]).toEqual([['pay'], 'hostile-299']);
  // Many accounts of one namespace, and the node ID of another client.
  for (let i = 0; i < 300; i++) reject(`sibling-${i}`, 'bank', `account-${i}`);
  reject('cart', 'bank', 'hostile', 'forged');
  expect(publisher.unpushedRejections).toHaveLength(100);
  expect(namesOf('cart')).toEqual(['cart', 'cart']);
  expect(publisher.unpushedRejections.at(-1)).not.toHaveProperty('account');
  // With one rejection for each client, the oldest is evicted.
  for (let i = 0; i < 200; i++) reject(`one-${i}`, `namespace-${i}`, 'default');
  expect(namesOf('one')).toHaveLength(100);
  expect(namesOf('one').at(-1)).toBe('one-199');
});

it('changesView lists, for a rejected push, EnvoyFilters and the objects in the message before other objects', () => {
  const publisher = new HistoryFixture();
  const filter = { ...model!, kind: 'EnvoyFilter', name: 'lua', resourceVersion: '1' };
  publisher.push(entries(50));
  const version = publisher.push(new ConfigSnapshot([filter]));
  const namesOfLastPush = () => publisher.views.at(-1)!.objects.items.map(({ name }) => name);
  expect(namesOfLastPush()[0]).toBe('v0');
  const proxy = node('a', 'Error updating listener(s) shop/v7: script load error', version);
  publisher.history.onSent(proxy, clusters, version, 'push');
  publisher.history.onRejected(proxy, clusters);
  expect(namesOfLastPush().slice(0, 2)).toEqual(['lua', 'v0']);
  const named = node('b', 'v7: script load error', version);
  publisher.history.onSent(named, clusters, version, 'push');
  publisher.history.onRejected(named, clusters);
  expect(namesOfLastPush().slice(0, 2)).toEqual(['v7', 'lua']);
});

it('ChangeHistory counts the names that exceed the list limit', () => {
  const publisher = new HistoryFixture();
  publisher.push(entries(1_500));
  expect(publisher.views.at(-1)!.objects).toMatchObject({ items: { length: 1_000 }, more: 500 });
  const version = publisher.push(entries(1_500, '-changed'));
  for (let i = 0; i < 250; i++) publisher.history.onSent(node(`proxy-${i}`), clusters, version, 'push');
  expect(publisher.views.at(-1)).toMatchObject({
    pushedTo: { items: { length: 100 }, more: 150 },
    proxies: { pushed: 250 },
  });
});

it('ChangeHistory lists objects that match the filter first, then changed and added objects', () => {
  const publisher = new HistoryFixture();
  publisher.push(entries(2));
  publisher.push(entries(12, '-changed'));
  const names = (object?: string): string[] =>
    changesView(publisher.history, () => [], { ...allChanges, ...(object !== undefined && { object }) })
      .pushes.at(-1)!
      .objects.items.slice(0, 3)
      .map(({ change, name }) => `${change} ${name}`);
  expect(names()).toEqual(['changed v0', 'changed v1', 'added v10']);
  expect(names('shop/v7')).toEqual(['added v7', 'changed v0', 'changed v1']);
});

it('ChangeHistory does not evict configuration pushes when endpoints are pushed', () => {
  const smallLimits = { maxRecords: 3, maxBytes: 1_000_000 };
  const publisher = new HistoryFixture({ limits: { configuration: smallLimits, endpoints: smallLimits } });
  for (let i = 1; i <= 2; i++) publisher.push(entries(i));
  for (let i = 0; i < 10; i++) publisher.push(undefined, [`Endpoints/shop/h${i}.test`]);
  expect(publisher.views.map(({ push }) => push)).toEqual([1, 2, 3, 11, 12, 13]);
  publisher.push(entries(5));
  expect(publisher.views.map(({ push }) => push)).toEqual([2, 3, 11, 12, 13, 14]);
  expect(publisher.history.occupancy).toMatchObject({
    configuration: { pushes: 3, evicted: 1 },
    endpoints: { evicted: 7 },
  });
});

it('ChangeHistory limits its size in bytes, including names of proxies and rejections', () => {
  const limits = { maxRecords: 1_000, maxBytes: 200_000 };
  const publisher = new HistoryFixture({ limits: { configuration: limits, endpoints: limits } });
  for (let i = 1; i <= 40; i++) {
    const version = publisher.push(entries(100, `-${i}`));
    for (let proxy = 0; proxy < 30; proxy++) {
      const one = node(`sidecar~10.0.0.1~web-${proxy}.shop~shop.svc.cluster.local`, 'x'.repeat(5_000), version);
      publisher.history.onSent(one, clusters, version, 'push');
      publisher.history.onRejected(one, clusters);
    }
  }
  const { configuration } = publisher.history.occupancy;
  expect(configuration.bytes).toBeLessThanOrEqual(200_000);
  expect(configuration.pushes).toBeGreaterThan(3);
  expect(publisher.views.at(-1)!.rejections).toMatchObject({ items: { length: 20 }, more: 10 });
});
