import { expect, it } from 'vitest';
import { readConfigFile } from '../../model/config/config-file.ts';
import { ConfigSnapshot } from '../config/snapshots/config-snapshot.ts';
import type { Publication } from '../push/contexts/mesh-state.ts';
import type { MeshNode } from '../push/mesh-resources.ts';
import { ChangeHistory } from './change-history.ts';
import { changesView } from './change-view.ts';

const [clusters, listeners] = ['type.googleapis.com/envoy.config.cluster.v3.Cluster', 'listeners'];
const settings = {};
const everything = { rejected: false, endpoints: true };

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
class Given {
  time = 1_000;
  readonly history: ChangeHistory;
  #count = 0;
  #previousContext: Publication['context'] | undefined;
  #applied = ConfigSnapshot.empty;

  constructor(limits?: ConstructorParameters<typeof ChangeHistory>[0]) {
    this.history = new ChangeHistory({ now: () => this.time, ...limits });
    this.push();
  }

  push(applied = this.#applied, changed: readonly string[] = []): string {
    const version = `2026-11-29T14:05:00.000Z/${++this.#count}`;
    const context = { version, mesh: settings } as Publication['context'];
    const head = { previous: this.#previousContext, forced: false, changed: new Set(changed) };
    this.history.published({ context, ...head, configs: applied, applied, objects: [...applied.differingKeys(this.#applied)] });
    this.#previousContext = context;
    this.#applied = applied;
    return version;
  }

  get views() {
    return changesView(this.history, () => [], everything).pushes;
  }
}

function node(id: string, lastError = '', versionSent = ''): MeshNode {
  return { proxy: { id }, watches: { [clusters]: { lastError, versionSent } } } as unknown as MeshNode;
}

it('ChangeHistory counts each proxy once, however many resource types the proxy receives', () => {
  const given = new Given();
  const version = given.push(entries(1));
  const proxies = [node('a'), node('b'), node('c')];
  for (const proxy of proxies) {
    given.history.sent(proxy, clusters, version);
    given.history.sent(proxy, listeners, version);
  }
  given.time += 500;
  for (const proxy of proxies.slice(0, 2)) given.history.acknowledged(proxy, clusters, version);
  given.history.acknowledged(proxies[0]!, listeners, version);
  expect(given.views.at(-1)).toMatchObject({
    proxies: { pushed: 3, acknowledged: 1, rejected: 0, pending: 2, unanswered: 0 },
    answeredMs: 500,
  });
  expect([...given.history.pendingAt(given.history.records.at(-1)!, proxies)]).toEqual(['b', 'c']);
  given.history.disconnected(proxies[2]!);
  given.history.sent(proxies[1]!, clusters, given.push(entries(2)));
  expect(given.views.at(-2)).toMatchObject({ proxies: { acknowledged: 1, pending: 0, unanswered: 2 } });
});

it('ChangeHistory counts a proxy as pending again when another response follows an acknowledged one', () => {
  const given = new Given();
  const version = given.push(entries(1));
  const proxy = node('a');
  given.history.sent(proxy, clusters, version);
  given.history.acknowledged(proxy, clusters, version);
  given.history.sent(proxy, listeners, version);
  expect(given.views.at(-1)).toMatchObject({ proxies: { pushed: 1, acknowledged: 0, pending: 1 } });
});

it('ChangeHistory does not count a late ACK of the previous response for the current push', () => {
  const given = new Given();
  const earlier = given.push(entries(1));
  const proxy = node('a');
  given.history.sent(proxy, clusters, earlier);
  given.history.sent(proxy, clusters, given.push(entries(2)));
  given.history.acknowledged(proxy, clusters, earlier);
  expect(given.views.at(-1)).toMatchObject({ proxies: { acknowledged: 0, pending: 1 } });
});

it('ChangeHistory counts a rejection for the push of the rejected version, even if the proxy was not part of that push', () => {
  const given = new Given();
  const version = given.push(entries(1));
  given.push(entries(2));
  given.history.rejected(node('new', 'no such filter', version), clusters);
  expect(given.views.map(({ rejections }) => rejections.items.map(({ reason }) => reason))).toEqual([
    [],
    ['no such filter'],
    [],
  ]);
});

it('ChangeHistory counts the names that exceed the list limit', () => {
  const given = new Given();
  given.push(entries(1_500));
  expect(given.views.at(-1)!.objects).toMatchObject({ items: { length: 1_000 }, more: 500 });
  const version = given.push(entries(1_500, '-changed'));
  for (let i = 0; i < 250; i++) given.history.sent(node(`proxy-${i}`), clusters, version);
  expect(given.views.at(-1)).toMatchObject({
    pushedTo: { items: { length: 100 }, more: 150 },
    proxies: { pushed: 250 },
  });
});

it('ChangeHistory lists objects that match the filter first, then changed and added objects', () => {
  const given = new Given();
  given.push(entries(2));
  given.push(entries(12, '-changed'));
  const names = (object?: string): string[] =>
    changesView(given.history, () => [], { ...everything, ...(object !== undefined && { object }) })
      .pushes.at(-1)!
      .objects.items.slice(0, 3)
      .map(({ change, name }) => `${change} ${name}`);
  expect(names()).toEqual(['changed v0', 'changed v1', 'added v10']);
  expect(names('shop/v7')).toEqual(['added v7', 'changed v0', 'changed v1']);
});

it('ChangeHistory does not evict configuration pushes when endpoints are pushed', () => {
  const small = { maxRecords: 3, maxBytes: 1_000_000 };
  const given = new Given({ limits: { configuration: small, endpoints: small } });
  for (let i = 1; i <= 2; i++) given.push(entries(i));
  for (let i = 0; i < 10; i++) given.push(undefined, [`Endpoints/shop/h${i}.test`]);
  expect(given.views.map(({ push }) => push)).toEqual([1, 2, 3, 11, 12, 13]);
  given.push(entries(5));
  expect(given.views.map(({ push }) => push)).toEqual([2, 3, 11, 12, 13, 14]);
  expect(given.history.occupancy).toMatchObject({
    configuration: { pushes: 3, evicted: 1 },
    endpoints: { evicted: 7 },
  });
});

it('ChangeHistory limits its size in bytes, including names of proxies and rejections', () => {
  const limits = { maxRecords: 1_000, maxBytes: 200_000 };
  const given = new Given({ limits: { configuration: limits, endpoints: limits } });
  for (let i = 1; i <= 40; i++) {
    const version = given.push(entries(100, `-${i}`));
    for (let proxy = 0; proxy < 30; proxy++) {
      const one = node(`sidecar~10.0.0.1~web-${proxy}.shop~shop.svc.cluster.local`, 'x'.repeat(5_000), version);
      given.history.sent(one, clusters, version);
      given.history.rejected(one, clusters);
    }
  }
  const { configuration } = given.history.occupancy;
  expect(configuration.bytes).toBeLessThanOrEqual(200_000);
  expect(configuration.pushes).toBeGreaterThan(3);
  expect(given.views.at(-1)!.rejections).toMatchObject({ items: { length: 20 }, more: 10 });
});
