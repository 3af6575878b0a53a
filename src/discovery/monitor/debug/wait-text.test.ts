import { describe, expect, test } from 'vitest';
import { routeType } from '../../../../machines/discovery/xds/ads-types.ts';
import { pendingResources, pendingText } from '../../explain/pending.ts';
import type { KeptWait, RolloutWait, WarmingWait } from '../../xds/rollout/rollout-waits.ts';
import type { ProxyDescription } from './proxy-description.ts';
import { proxiesPage } from './proxy-html.ts';
import { describeWait } from './wait-text.ts';

const keptWait = (fields: Partial<KeptWait>): KeptWait => ({
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

test('the connection view and explain list 20 retained clusters of a proxy and count the others', () => {
  const waits = Array.from({ length: 25 }, (_, index) => describeWait(keptWait({ name: `<c${index}>` })));
  const type = {
    type: 'cluster.v3.Cluster',
    typeUrl: '',
    state: 'SYNCED',
    watches: '*',
    sent: { version: '', nonce: '', at: '' },
    acknowledged: { version: '' },
    waits,
  };
  const proxy = {
    ...{ proxy: 'p', worst: 'SYNCED', connectionId: 'p-1', connectedAt: '', namespace: '', cluster: '', version: '' },
    ...{ type: 'router', envoy: '', address: '', context: '', state: '', types: [type] },
  };
  const page = proxiesPage([proxy as unknown as ProxyDescription], { showsDetails: true });
  expect(page).toContain('kept: <code>&lt;c19&gt;</code>: not configured, kept while');
  expect(page).not.toContain('c20');
  expect(page).toContain('5 more, see the JSON of this page');
  const lines = pendingText(pendingResources([proxy]))
    .trimEnd()
    .split('\n');
  expect(lines).toHaveLength(21);
  expect(lines.at(-1)).toContain('5 more in /debug/proxyz');
});
