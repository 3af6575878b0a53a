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
}

function node(id: string, lastError = '', versionSent = ''): MeshNode {
  return { proxy: { id }, watches: { [clusters]: { lastError, versionSent } } } as unknown as MeshNode;
}

it('ChangeHistory counts each proxy once, however many resource types the proxy receives', () => {
  const publisher = new HistoryFixture();
  const version = publisher.push(entries(1));
  const proxies = [node('a'), node('b'), node('c')];
  for (const proxy of proxies) {
    publisher.history.sent(proxy, clusters, version);
    publisher.history.sent(proxy, listeners, version);
  }
  publisher.time += 500;
  for (const proxy of proxies.slice(0, 2)) publisher.history.acknowledged(proxy, clusters, version);
  publisher.history.acknowledged(proxies[0]!, listeners, version);
  expect(publisher.views.at(-1)).toMatchObject({
    proxies: { pushed: 3, acknowledged: 1, rejected: 0, pending: 2, unanswered: 0 },
    answeredMs: 500,
  });
  expect([...publisher.history.pendingAt(publisher.history.records.at(-1)!, proxies)]).toEqual(['b', 'c']);
  publisher.history.disconnected(proxies[2]!);
  publisher.history.sent(proxies[1]!, clusters, publisher.push(entries(2)));
  expect(publisher.views.at(-2)).toMatchObject({ proxies: { acknowledged: 1, pending: 0, unanswered: 2 } });
});

it('ChangeHistory counts a proxy as pending again when another response follows an acknowledged one', () => {
  const publisher = new HistoryFixture();
  const version = publisher.push(entries(1));
  const proxy = node('a');
  publisher.history.sent(proxy, clusters, version);
  publisher.history.acknowledged(proxy, clusters, version);
  publisher.history.sent(proxy, listeners, version);
  expect(publisher.views.at(-1)).toMatchObject({ proxies: { pushed: 1, acknowledged: 0, pending: 1 } });
});

it('ChangeHistory does not count a late ACK of the previous response for the current push', () => {
  const publisher = new HistoryFixture();
  const earlierVersion = publisher.push(entries(1));
  const proxy = node('a');
  publisher.history.sent(proxy, clusters, earlierVersion);
  publisher.history.sent(proxy, clusters, publisher.push(entries(2)));
  publisher.history.acknowledged(proxy, clusters, earlierVersion);
  expect(publisher.views.at(-1)).toMatchObject({ proxies: { acknowledged: 0, pending: 1 } });
});

it('ChangeHistory counts a rejection for the push of the rejected version, even if the proxy was not part of that push', () => {
  const publisher = new HistoryFixture();
  const version = publisher.push(entries(1));
  publisher.push(entries(2));
  publisher.history.rejected(node('new', 'no such filter', version), clusters);
  expect(publisher.views.map(({ rejections }) => rejections.items.map(({ reason }) => reason))).toEqual([
    [],
    ['no such filter'],
    [],
  ]);
});

it('ChangeHistory counts the names that exceed the list limit', () => {
  const publisher = new HistoryFixture();
  publisher.push(entries(1_500));
  expect(publisher.views.at(-1)!.objects).toMatchObject({ items: { length: 1_000 }, more: 500 });
  const version = publisher.push(entries(1_500, '-changed'));
  for (let i = 0; i < 250; i++) publisher.history.sent(node(`proxy-${i}`), clusters, version);
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
      publisher.history.sent(one, clusters, version);
      publisher.history.rejected(one, clusters);
    }
  }
  const { configuration } = publisher.history.occupancy;
  expect(configuration.bytes).toBeLessThanOrEqual(200_000);
  expect(configuration.pushes).toBeGreaterThan(3);
  expect(publisher.views.at(-1)!.rejections).toMatchObject({ items: { length: 20 }, more: 10 });
});
