import { expect, test } from 'vitest';
import { givenMesh } from '../../../test/fixtures/given-mesh.ts';
import { type ProxyConfigWorkload, proxyConfigFor } from './workload-proxy-config.ts';

const object = (namespace: string, name: string, spec: string): string => `
apiVersion: networking.istio.io/v1beta1
kind: ProxyConfig
metadata: {name: ${name}, namespace: ${namespace}}
spec: ${spec}
`;

const { configs, context } = givenMesh(
  [
    object(
      'istio-system',
      'mesh',
      '{concurrency: 4, environmentVariables: {A: root, B: root, C: root}, image: {imageType: debug}}',
    ),
    object('istio-system', 'mesh-gateways', '{selector: {matchLabels: {app: gateway}}, concurrency: 5}'),
    object('shop', 'namespace', '{environmentVariables: {B: namespace, C: namespace}}'),
    object('shop', 'younger', '{concurrency: 6}'),
    object(
      'shop',
      'cart',
      '{selector: {matchLabels: {app: cart}}, concurrency: 0, environmentVariables: {C: workload}}',
    ),
    object('shop', 'cart-younger', '{selector: {matchLabels: {app: cart}}, concurrency: 7}'),
    object('other', 'elsewhere', '{selector: {matchLabels: {app: cart}}, concurrency: 8}'),
  ].join('---'),
  { meshConfig: 'defaultConfig: {concurrency: 3, statusPort: 15022, proxyMetadata: {A: default, D: default}}' },
);

function mergedConfig(workload: ProxyConfigWorkload) {
  const { proxyConfig, objects } = proxyConfigFor(configs.ProxyConfig, context.mesh, workload);
  const { concurrency, proxyMetadata, image, statusPort } = proxyConfig;
  return { concurrency, ...proxyMetadata, image, statusPort, objects: objects.map(({ name }) => name) };
}

test("the root namespace's ProxyConfig is merged over the mesh default", () => {
  expect(mergedConfig({ namespace: 'default', labels: {} })).toEqual({
    ...{ concurrency: 4, A: 'root', B: 'root', C: 'root', D: 'default' },
    ...{ image: { imageType: 'debug' }, statusPort: 15022, objects: ['mesh'] },
  });
});

test('a ProxyConfig is merged over that of the root namespace if it is the oldest of its namespace, and over both if it selects the workload', () => {
  expect(mergedConfig({ namespace: 'shop', labels: { app: 'blog' } })).toMatchObject({
    ...{ concurrency: 4, A: 'root', B: 'namespace', C: 'namespace', objects: ['mesh', 'namespace'] },
  });
  expect(mergedConfig({ namespace: 'shop', labels: { app: 'cart', version: 'v1' } })).toMatchObject({
    ...{ concurrency: 0, A: 'root', B: 'namespace', C: 'workload', objects: ['mesh', 'namespace', 'cart'] },
  });
});

test('a ProxyConfig with a selector applies only to workloads in its own namespace, even in the root namespace', () => {
  expect(mergedConfig({ namespace: 'default', labels: { app: 'cart' } }).objects).toEqual(['mesh']);
  expect(mergedConfig({ namespace: 'default', labels: { app: 'gateway' } }).concurrency).toBe(4);
  expect(mergedConfig({ namespace: 'istio-system', labels: { app: 'gateway' } })).toMatchObject({
    ...{ concurrency: 5, objects: ['mesh', 'mesh-gateways'] },
  });
});

test("a pod's annotation takes precedence over a ProxyConfig without a selector, but not over one with a selector", () => {
  const annotation = { concurrency: 9, statusPort: 15030, proxyMetadata: { B: 'annotation', C: 'annotation' } };
  expect(mergedConfig({ namespace: 'shop', labels: {}, annotation })).toMatchObject({
    ...{ concurrency: 9, A: 'root', B: 'annotation', C: 'annotation', statusPort: 15030 },
  });
  expect(mergedConfig({ namespace: 'shop', labels: { app: 'cart' }, annotation })).toMatchObject({
    ...{ concurrency: 0, B: 'annotation', C: 'workload', statusPort: 15030 },
  });
});
