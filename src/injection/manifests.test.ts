import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { defaultMeshConfig } from '../model/mesh/mesh-config.ts';
import { defaultProxyConfig } from '../model/mesh/proxy-config.ts';
import type { SidecarInjector } from './injector.ts';
import { injectManifests } from './manifests.ts';
import { defaultInjectionConfig, defaultInjectionValues } from './settings.ts';

const injector: SidecarInjector = {
  settings: {
    config: defaultInjectionConfig,
    values: { ...defaultInjectionValues, hub: 'example.com', tag: '1', nativeSidecars: false },
    revision: '',
  },
  mesh: defaultMeshConfig,
  proxyConfigFor: () => defaultProxyConfig,
};

const service = `# A comment.
apiVersion: v1
kind:   Service
metadata: {name: web}   # kept
spec: {ports: [{port: 80}]}
`;
const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web # the name
spec:
  replicas: 2   # kept, too
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
        - name: app
          image: web:1
  # behind
  minReadySeconds: 3
`;

function containersOf(template: unknown): string[] {
  return (template as { spec: { containers: { name: string }[] } }).spec.containers.map(({ name }) => name);
}

test('bytes outside of pod templates are unchanged', () => {
  const { text, errors, skipped } = injectManifests(`${service}---\n${deployment}---\n${service}`, injector, 'shop');
  expect([errors, skipped]).toEqual([[], []]);
  const [unchanged, changedDocument, documentBehind] = text.split('---\n');
  expect([unchanged, documentBehind]).toEqual([service, service]);
  const start = deployment.slice(0, deployment.indexOf('    metadata:'));
  const end = deployment.slice(deployment.indexOf('  # behind'));
  expect(changedDocument!.startsWith(start)).toBe(true);
  expect(changedDocument!.endsWith(end)).toBe(true);
  const [, secondDocument] = parseAllDocuments(text);
  const object = secondDocument!.toJS() as { spec: { template: Record<string, unknown> } };
  expect(containersOf(object.spec.template)).toEqual(['app', 'istio-proxy']);
  expect(object.spec.template.metadata).not.toHaveProperty('ownerReferences');
  expect(JSON.stringify(object)).toContain('kubernetes://apis/apps/v1/namespaces/shop/deployments/web');
});

test('injecting injected manifests changes nothing', () => {
  const { text } = injectManifests(`${service}---\n${deployment}`, injector, 'shop');
  expect(injectManifests(text, injector, 'shop').text).toBe(text);
});

test('a list, a CronJob, JSON and a pod are injected, but an unknown kind and a skipped pod are unchanged', () => {
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { containers: [{ name: 'app' }] } };
  const cron = {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'c' },
    spec: { jobTemplate: { spec: { template: { spec: pod.spec } } } },
  };
  const host = { ...pod, metadata: { name: 'h' }, spec: { ...pod.spec, hostNetwork: true } };
  const unknownKind = { apiVersion: 'example.com/v1', kind: 'Thing', spec: { template: { spec: pod.spec } } };
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [cron, unknownKind, host, pod] }, null, 2);
  const { text, skipped, errors } = injectManifests(list, injector, 'shop');
  expect(errors).toEqual([]);
  expect(skipped.map(({ object }) => object)).toEqual(['Pod shop/h']);
  const { items } = JSON.parse(text) as { items: [typeof cron, unknown, unknown, typeof pod] };
  expect(items.slice(1, 3)).toEqual([unknownKind, host]);
  expect(containersOf(items[0].spec.jobTemplate.spec.template)).toEqual(['app', 'istio-proxy']);
  expect(containersOf(items[3])).toEqual(['app', 'istio-proxy']);
});

test('a document that cannot be injected is unchanged and reported with its line', () => {
  const brokenText = 'kind: Pod\nspec: {containers: [';
  const invalidPod = `apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: x}\n`;
  const { text, errors } = injectManifests(`${invalidPod}---\n${brokenText}`, injector, 'shop');
  expect(text).toBe(`${invalidPod}---\n${brokenText}`);
  expect(errors.map(({ line, object }) => ({ line, object }))).toEqual([
    { line: 1, object: 'Pod shop/p' },
    { line: expect.any(Number), object: 'document' },
  ]);
});

test.each([
  ...['ReplicationController', 'ReplicaSet', 'Deployment', 'DaemonSet', 'StatefulSet', 'Job', 'DeploymentConfig'],
])('the pod template of a %s is injected (§4.6)', (kind) => {
  const object = {
    apiVersion: 'v1',
    kind,
    metadata: { name: 'a' },
    spec: { template: { spec: { containers: [{ name: 'app' }] } } },
  };
  const { text } = injectManifests(JSON.stringify(object), injector, 'shop');
  expect(containersOf((JSON.parse(text) as typeof object).spec.template)).toEqual(['app', 'istio-proxy']);
});

test('a pod that is already injected is injected again with the current settings (§4.6)', () => {
  const { text } = injectManifests(deployment, injector, 'shop');
  const values = { ...injector.settings.values, tag: '2' };
  const reinjected = injectManifests(text, { ...injector, settings: { ...injector.settings, values } }, 'shop');
  expect(reinjected.text).toBe(text.replaceAll('example.com/proxyv2:1', 'example.com/proxyv2:2'));
});
