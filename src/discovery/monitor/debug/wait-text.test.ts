import { describe, expect, test } from 'vitest';
import { clusterType, listenerType, routeType } from '../../../../machines/discovery/xds/ads-types.ts';
import { pendingResources, pendingText } from '../../explain/pending.ts';
import type { MeshResources } from '../../push/mesh-resources.ts';
import type { ConnectionView } from '../../xds/ads-observer.ts';
import type { RetentionWait, RolloutWait, WarmingWait } from '../../xds/rollout/rollout-waits.ts';
import { describeProxies, type ProxyDescription } from './proxy-description.ts';
import { proxiesPage } from './proxy-html.ts';
import { describeWait } from './wait-text.ts';

const keptWait = (fields: Partial<RetentionWait>): RetentionWait => ({
  ...{ kind: 'kept', name: 'a', state: 'named', unacknowledged: [], drains: false, maxMs: undefined },
  ...fields,
});
const warming = (fields: Partial<WarmingWait>): WarmingWait => ({
  ...{ kind: 'warming', name: 'a', state: 'sent', needs: 'acknowledgement' },
  ...fields,
});

describe('describeWait', () => {
  test.each<[RolloutWait, string]>([
    [{ kind: 'held', name: 'r', clusters: ['*'] }, 'names clusters that are not warmed yet: all'],
    [{ kind: 'held', name: 'r', clusters: [] }, 'sent next: the proxy can use all clusters that it names'],
    [warming({ name: '*' }), 'the proxy reconnected and has not acknowledged clusters'],
    [warming({ state: 'unsent' }), 'not sent yet: the proxy has not acknowledged'],
    [warming({ state: 'rejected' }), 'rejected by the proxy'],
    [warming({ state: 'updating' }), 'the proxy uses the previous version'],
    [warming({ needs: 'assignment' }), 'usable when its endpoints are sent'],
    [keptWait({ namedBy: { typeUrl: routeType, name: 'r' } }), 'kept while route.v3.RouteConfiguration r names it'],
    [keptWait({ namedBy: 'held resource' }), 'kept while a resource that is held back names it'],
    [keptWait({ namedBy: 'previous stream' }), 'kept while the proxy may use listeners and routes of its previous'],
    [keptWait({ state: 'unacknowledged', unacknowledged: [routeType] }), 'until the proxy acknowledges route.v3.Route'],
    [
      keptWait({ state: 'lingering', maxMs: 9_950, drains: false }),
      'removed in at most 10 s: requests that chose a route',
    ],
    [
      keptWait({ state: 'lingering', maxMs: 55_000, drains: true }),
      'removed in at most 55 s: connections of a replaced',
    ],
    [keptWait({ state: 'removable', maxMs: 0 }), 'removed with the next response'],
    [
      { kind: 'kept', name: 'r', state: 'subscribed' },
      'no configured listener uses it, kept until the proxy unsubscribes',
    ],
    [{ kind: 'given up', name: 'a', fetchMs: 15_000 }, 'sent with a time limit of 15 s'],
  ])('describes the wait %j', (wait, reason) => {
    expect(describeWait(wait).why).toContain(reason);
  });
});

describe('the connection view of a proxy that rejects listeners and keeps 25 clusters', () => {
  const watch = { names: [], wildcard: true, nonceSent: '2', nonceAcked: '1', nonceRejected: '', lastError: '' };
  const versions = { versionSent: '', versionAcked: '' };
  const kept = Array.from({ length: 25 }, (_, index) => keptWait({ name: `<c${index}>` }));
  const connection = {
    ...{ id: 'p-1', node: 'p', peer: '', protocol: 'sotw', connectedAt: '', state: '', identity: { metadata: {} } },
    watches: [
      { ...watch, ...versions, typeUrl: clusterType, waits: [...kept, warming({ name: 'new' })] },
      { ...watch, ...versions, typeUrl: listenerType, nonceRejected: '2', lastError: 'script load error' },
    ],
  } as unknown as ConnectionView;
  const describeWith = (options?: { allWaits: boolean }) =>
    describeProxies([connection], { nodes: [] } as unknown as MeshResources, options);

  test('lists the rejected type first, and waits of new clusters before kept clusters', () => {
    const [{ types }] = describeWith() as [ProxyDescription];
    expect(types.map(({ type, rejected }) => [type, rejected])).toEqual([
      ['listener.v3.Listener', 'script load error'],
      ['cluster.v3.Cluster', undefined],
    ]);
    expect(types[1]!.waits!.map(({ name }) => name).slice(0, 2)).toEqual(['new', '<c0>']);
  });

  test('lists 20 waits and the number of others in JSON, HTML and explain, and all of them with allWaits', () => {
    const proxies = describeWith();
    expect(proxies[0]!.types[1]).toMatchObject({ waits: { length: 20 }, moreWaits: 6 });
    const page = proxiesPage(proxies, { showsDetails: true });
    expect(page).toContain('kept: <code>&lt;c18&gt;</code>: not configured, kept while');
    expect(page).not.toContain('c19');
    expect(page).toContain('6 more: add &amp;allWaits to the address');
    const lines = pendingText(pendingResources(proxies)).trimEnd().split('\n');
    expect(lines.at(-1)).toContain('6 more in /debug/proxyz?allWaits');
    const [all] = describeWith({ allWaits: true });
    expect(all!.types[1]!.waits).toHaveLength(26);
    expect(all!.types[1]!.moreWaits).toBeUndefined();
  });
});
