import { describe, expect, test } from 'vitest';
import { ChurnModel, edgeNamespace, namespaces, visibilityOf, wideNamespace } from './churn-model.ts';

/**
 * `ns-0` imports `ns-1` in addition to its own namespace, `ns-3` one service of `ns-5`, `ns-5` everything, `ns-1` only
 * its own namespace.
 */
const affectedBy = (...affected: Parameters<ChurnModel['apply']>): string[] => [
  ...new ChurnModel(20).apply(...affected).namespaces,
];
const seeingAll = [
  ...namespaces.filter((namespace) => visibilityOf(namespace).sees === 'all'),
  wideNamespace,
  edgeNamespace,
];

describe('the scope of a change', () => {
  test('a change affects the proxies whose Sidecar objects import the service', () => {
    expect(new Set(affectedBy('endpoints', { namespace: 'ns-1', service: 0 }))).toEqual(
      new Set(['ns-0', 'ns-1', ...seeingAll]),
    );
    expect(affectedBy('endpoints', { namespace: 'ns-5', service: 0 })).toContain('ns-3');
    expect(affectedBy('endpoints', { namespace: 'ns-5', service: 1 })).not.toContain('ns-3');
  });

  test('a change of a private service or rule affects only its own namespace', () => {
    expect(affectedBy('endpoints', { namespace: 'ns-1', service: 4 })).toEqual(['ns-1']);
    expect(affectedBy('route', { namespace: 'ns-1', service: 2 })).toEqual(['ns-1']);
    expect(affectedBy('rule', { namespace: 'ns-1', service: 1 })).toEqual(['ns-1']);
  });

  test('a change affects gateways unless it changes a mesh route', () => {
    expect(affectedBy('rule', { namespace: 'ns-1', service: 0 })).toContain(edgeNamespace);
    expect(affectedBy('route', { namespace: 'ns-1', service: 0 })).not.toContain(edgeNamespace);
    expect(affectedBy('gateway route', { namespace: 'ns-1', service: 0 })).toEqual([edgeNamespace]);
  });

  test('a change of exportTo affects the proxies that see the service only before or only after the change', () => {
    const affected = affectedBy('export', { namespace: 'ns-1', service: 0 });
    expect(new Set(affected)).toEqual(new Set(['ns-0', ...seeingAll]));
    const model = new ChurnModel(20);
    model.apply('export', { namespace: 'ns-1', service: 0 });
    expect([...model.apply('endpoints', { namespace: 'ns-1', service: 0 }).namespaces]).toEqual(['ns-1']);
  });
});

test('a change of a Sidecar object imports another neighbour', () => {
  const model = new ChurnModel(1);
  expect(model.visibleHosts('ns-0')).toEqual(['svc-0.ns-0.svc.cluster.local', 'svc-0.ns-1.svc.cluster.local']);
  expect([...model.apply('sidecar', { namespace: 'ns-0', service: 0 }).namespaces]).toEqual(['ns-0']);
  expect(model.visibleHosts('ns-0')).toEqual(['svc-0.ns-0.svc.cluster.local', 'svc-0.ns-2.svc.cluster.local']);
  model.apply('leave', { namespace: 'ns-2', service: 0 });
  expect(model.visibleHosts('ns-0')).toEqual(['svc-0.ns-0.svc.cluster.local']);
});
