import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sized } from '../../test/harness/size-of-run.ts';
import { defaultMeshConfig } from '../model/mesh/mesh-config.ts';
import { defaultProxyConfig } from '../model/mesh/proxy-config.ts';
import { environmentOfPath, reviewInjection } from './admission-review.ts';
import type { SidecarInjector } from './injector.ts';
import { defaultInjectionConfig, defaultInjectionValues } from './settings.ts';

const injector: SidecarInjector = {
  settings: {
    config: defaultInjectionConfig,
    values: { ...defaultInjectionValues, hub: 'example.com', tag: '1' },
    revision: '',
  },
  mesh: defaultMeshConfig,
  proxyConfigFor: () => defaultProxyConfig,
};

const pod = { metadata: { generateName: 'web-', creationTimestamp: null }, spec: { containers: [{ name: 'app' }] } };
const review = (object: unknown, apiVersion = 'admission.k8s.io/v1') => ({
  ...{ apiVersion, kind: 'AdmissionReview' },
  request: { uid: 'u1', namespace: 'shop', object },
});

test.each(['admission.k8s.io/v1', 'admission.k8s.io/v1beta1'])(
  'a review of %s gets a response with the same version and uid',
  (version) => {
    const reviewed = reviewInjection(review(pod, version), injector);
    expect(reviewed).toMatchObject({ outcome: 'injected', pod: 'pod shop/web-***' });
    expect(reviewed.review).toMatchObject({
      apiVersion: version,
      response: { uid: 'u1', allowed: true, patchType: 'JSONPatch' },
    });
    const patch = JSON.parse(Buffer.from(reviewed.review.response.patch!, 'base64').toString()) as { path: string }[];
    expect(patch.map(({ path }) => path)).toContain('/spec/initContainers');
  },
);

test('a patch contains no managed fields (§1.5)', () => {
  const metadata = { name: 'p', managedFields: [{ manager: 'x', fieldsV1: { 'f:spec': {} } }] };
  const { patch } = reviewInjection(review({ ...pod, metadata }), injector).review.response;
  expect(Buffer.from(patch!, 'base64').toString()).not.toMatch(/managedFields|fieldsV1/);
});

test('the namespace is taken from the pod, or else from the request (§1.2)', () => {
  const outcomeOf = (namespace: string | undefined, requestNamespace: string) =>
    reviewInjection(
      {
        ...{ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' },
        request: {
          ...{ uid: 'u1', namespace: requestNamespace },
          object: { ...pod, metadata: { ...(namespace && { namespace }) } },
        },
      },
      injector,
    ).outcome;
  expect(outcomeOf(undefined, 'kube-system')).toBe('skipped');
  expect(outcomeOf('shop', 'kube-system')).toBe('injected');
});

test('a pod that is skipped is allowed without a patch', () => {
  const reviewed = reviewInjection(
    review({ ...pod, metadata: { labels: { 'sidecar.istio.io/inject': 'false' } } }),
    injector,
  );
  expect(reviewed.review.response).toEqual({ uid: 'u1', allowed: true });
  expect(reviewed).toMatchObject({ outcome: 'skipped', reason: 'label sidecar.istio.io/inject is "false"' });
});

test('a value that is neither true nor false causes a warning to the API client', () => {
  const { response } = reviewInjection(
    review({ ...pod, metadata: { labels: { 'sidecar.istio.io/inject': 'ture' } } }),
    injector,
  ).review;
  expect(response).toMatchObject({ allowed: true, warnings: [expect.stringContaining('"ture"')] });
});

test('a rejection names pod, annotation and value', () => {
  const annotations = { 'sidecar.istio.io/proxyCPU': 'many' };
  const { response } = reviewInjection(review({ ...pod, metadata: { name: 'p', annotations } }), injector).review;
  expect(response).toMatchObject({ allowed: false, status: { code: 422 } });
  expect(response.status?.message).toBe(
    'cannot inject a sidecar into pod shop/p: metadata.annotations["sidecar.istio.io/proxyCPU"]: must be a quantity such as 100m or 128Mi, got "many"',
  );
});

const numRuns = sized({ quick: 100, short: 100, full: 100_000 });

test(`a review never throws for ${3 * numRuns} random texts and pods`, { timeout: 1_200_000 }, () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => void reviewInjection(value, injector)),
    { numRuns },
  );
  fc.assert(
    fc.property(fc.jsonValue(), (value) => void reviewInjection(review(value), injector)),
    { numRuns },
  );
  const partValue = fc.oneof(fc.jsonValue(), fc.constant([{ name: 'app' }]));
  const like = fc.record({
    metadata: fc.record({ labels: partValue, annotations: partValue, name: partValue }),
    spec: fc.record({ containers: partValue, initContainers: partValue, volumes: partValue }),
  });
  fc.assert(
    fc.property(like, (object) => void reviewInjection(review(object), injector)),
    { numRuns },
  );
});

test.each([
  ['/inject', {}],
  ['/inject/cluster/west/net/n1', { ISTIO_META_CLUSTER_ID: 'west', ISTIO_META_NETWORK: 'n1' }],
  ['/inject/zone/a--slash--b/odd', { ZONE: 'a/b' }],
  ['/inject/a%20b/c', undefined],
  ['/inject/%zz/c', undefined],
  ['/other', undefined],
])('environmentOfPath returns for the path %s the environment variables %j', (path, environment) => {
  expect(environmentOfPath(path)).toEqual(environment);
});
