import { describe, expect, it } from 'vitest';
import type { Config } from '../config/config.ts';
import type { EnvoyFilter } from '../kinds/envoy-filter/envoy-filter.ts';
import type { AuthorizationPolicy } from '../kinds/policies/authorization-policy.ts';
import type { PeerAuthentication } from '../kinds/policies/peer-authentication.ts';
import { envoyFilterIndex, PolicyIndex } from './policy-index.ts';

function config<Spec>(path: string, spec: Spec, creationTimestamp = 0): Config<Spec> {
  const [namespace = '', name = ''] = path.split('/');
  return {
    kind: 'X',
    apiVersion: 'security.istio.io/v1',
    name,
    namespace,
    labels: {},
    annotations: {},
    resourceVersion: '1',
    creationTimestamp,
    spec,
  };
}

const allow = (fields: Partial<AuthorizationPolicy> = {}): AuthorizationPolicy => ({
  action: 'ALLOW',
  rules: [],
  ...fields,
});
const pathsOf = (configs: readonly Config[]): string[] => configs.map(({ namespace, name }) => `${namespace}/${name}`);
const web = { namespace: 'shop', labels: { app: 'web', version: 'v1' } };

describe('the policies of a workload', () => {
  const index = new PolicyIndex(
    [
      config('shop/all', allow()),
      config('shop/web', allow({ selector: { app: 'web' } })),
      config('shop/other', allow({ selector: { app: 'other' } })),
      config('shop/attached', allow({ targetRefs: [{ group: '', kind: 'Service', name: 'web' }] })),
      config('shop/reaching', allow({ targetRefs: [{ group: '', kind: 'Service', name: 'web', namespace: 'store' }] })),
      config('istio-system/mesh', allow()),
      config('istio-system/web', allow({ selector: { version: 'v1' } })),
      config('store/all', allow()),
    ],
    'istio-system',
  );

  it('are those in the root namespace and in the namespace of the workload that select it, each in the given order', () => {
    expect(pathsOf(index.policiesFor(web))).toEqual(['istio-system/mesh', 'istio-system/web', 'shop/all', 'shop/web']);
    expect(pathsOf(index.policiesFor({ namespace: 'shop', labels: {} }))).toEqual(['istio-system/mesh', 'shop/all']);
    expect(pathsOf(index.policiesFor({ namespace: 'istio-system', labels: {} }))).toEqual(['istio-system/mesh']);
  });

  it('are computed once for workloads with the same labels', () => {
    expect(index.policiesFor(web)).toBe(
      index.policiesFor({ namespace: 'shop', labels: { version: 'v1', app: 'web' } }),
    );
  });

  it('are separate for each namespace if workloads of several namespaces share labels', () => {
    const { labels } = web;
    for (const namespace of ['shop', 'store', 'shop']) {
      expect(pathsOf(index.policiesFor({ namespace, labels })).at(-1)).toBe(
        namespace === 'shop' ? 'shop/web' : 'store/all',
      );
    }
  });

  it('include those attached to an object that the workload implements in its namespace', () => {
    const reference = { group: '', kind: 'Service', name: 'web' };
    const carrying = (namespace: string, targetFields: object = {}) => ({
      namespace,
      labels: {},
      targetableAs: [{ ...reference, namespace: 'shop', ...targetFields }],
    });
    expect(pathsOf(index.policiesFor(carrying('shop')))).toEqual(['istio-system/mesh', 'shop/all', 'shop/attached']);
    expect(pathsOf(index.policiesFor(carrying('shop', { name: 'other' })))).not.toContain('shop/attached');
    expect(pathsOf(index.policiesFor(carrying('shop', { namespace: 'store' })))).toEqual([
      'istio-system/mesh',
      'shop/all',
    ]);
    expect(pathsOf(index.policiesFor(carrying('store')))).toEqual(['istio-system/mesh', 'store/all']);
  });
});

describe('policies without a narrower override', () => {
  const policy = (selector?: Record<string, string>): PeerAuthentication => ({
    mtls: 'STRICT',
    ...(selector && { selector }),
  });
  const index = new PolicyIndex(
    [
      config('istio-system/mesh', policy()),
      config('istio-system/younger', policy(), 5),
      config('istio-system/selecting', policy({ app: 'web' })),
      config('shop/namespace', policy()),
      config('shop/web', policy({ app: 'web' })),
      config('shop/web-younger', policy({ app: 'web' }), 5),
    ],
    'istio-system',
  );

  it('are the oldest ones of the mesh, the namespace and the workload', () => {
    expect(pathsOf(index.layersFor(web))).toEqual(['istio-system/mesh', 'shop/namespace', 'shop/web']);
    expect(pathsOf(index.layersFor({ namespace: 'other', labels: {} }))).toEqual(['istio-system/mesh']);
    expect(pathsOf(index.layersFor({ namespace: 'istio-system', labels: { app: 'web' } }))).toEqual([
      'istio-system/mesh',
      'istio-system/selecting',
    ]);
  });
});

describe('the EnvoyFilters of a workload', () => {
  const patch = (priority: number, workloadSelector?: Record<string, string>): EnvoyFilter => ({
    priority,
    configPatches: [],
    ...(workloadSelector && { workloadSelector }),
  });

  it('are ordered by priority, then by namespace with the root first, then by age', () => {
    const index = envoyFilterIndex(
      [
        config('shop/late', patch(10)),
        config('shop/first', patch(-1, { app: 'web' })),
        config('shop/older', patch(0)),
        config('shop/younger', patch(0), 5),
        config('shop/other', patch(0, { app: 'other' })),
        config('istio-system/last', patch(100)),
        config('istio-system/equal', patch(0), 9),
      ],
      'istio-system',
    );
    expect(pathsOf(index.policiesFor(web))).toEqual([
      'shop/first',
      'istio-system/equal',
      'shop/older',
      'shop/younger',
      'shop/late',
      'istio-system/last',
    ]);
  });
});
