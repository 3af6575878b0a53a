import { expect, test } from 'vitest';
import {
  appPod,
  containerOf,
  environmentOf,
  errorsOf,
  flagOf,
  injected,
} from '../../../test/injection/given-injection.ts';
import type { Json, Pod } from './pod.ts';
import { workloadOf } from './pod-controller.ts';

const owned = (kind: string, name: string, labels: Readonly<Record<string, string>> = {}): Pod => ({
  metadata: {
    ...{ generateName: `${name}-`, labels },
    ownerReferences: [{ apiVersion: kind === 'Job' ? 'batch/v1' : 'apps/v1', kind, name, controller: true }],
  },
  spec: { containers: [] },
});

test.each<[string, Pod, object]>([
  [
    'a ReplicaSet of a Deployment',
    owned('ReplicaSet', 'web-7d9', { 'pod-template-hash': '7d9' }),
    { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
  ],
  [
    'a ReplicaSet without an owner',
    owned('ReplicaSet', 'web-7d9', { 'pod-template-hash': 'abc' }),
    { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-7d9' },
  ],
  [
    'a ReplicaSet of a Rollout',
    owned('ReplicaSet', 'web-7d9', { 'rollouts-pod-template-hash': '7d9' }),
    { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout', name: 'web' },
  ],
  [
    'a ReplicationController of a DeploymentConfig',
    owned('ReplicationController', 'web-3', { deploymentconfig: 'web' }),
    { apiVersion: 'apps.openshift.io/v1', kind: 'DeploymentConfig', name: 'web' },
  ],
  ['a Job of a CronJob', owned('Job', 'sync-28391234'), { apiVersion: 'batch/v1', kind: 'CronJob', name: 'sync' }],
  ['a Job', owned('Job', 'sync-1234567'), { apiVersion: 'batch/v1', kind: 'Job', name: 'sync-1234567' }],
  ['a StatefulSet', owned('StatefulSet', 'db'), { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db' }],
  [
    'no controller',
    { metadata: { name: 'p' }, spec: { containers: [] } },
    { apiVersion: 'v1', kind: 'Pod', name: 'p' },
  ],
])('DeploymentMeta is derived for a pod of %s (§2.1)', (_, pod, workload) => {
  expect(workloadOf(pod)).toEqual(workload);
});

const probesOf = (pod: Pod) => JSON.parse(String(environmentOf(pod).ISTIO_KUBE_APP_PROBERS ?? '{}')) as Json;
const probe = (handler: Json) => ({ readinessProbe: handler });

test('probes and hooks of containers and init containers have separate paths (§4.1)', () => {
  const httpGet = { port: 80 };
  const all = {
    ...{
      readinessProbe: { httpGet },
      livenessProbe: { tcpSocket: { port: 81 } },
      startupProbe: { grpc: { port: 82 } },
    },
    lifecycle: { preStop: { httpGet }, postStart: { sleep: { seconds: 1 } } },
  };
  const pod = injected({
    spec: {
      containers: [{ name: 'app', ...all }],
      initContainers: [{ name: 'db', restartPolicy: 'Always', startupProbe: { httpGet } }],
    },
  });
  expect(Object.keys(probesOf(pod)).sort()).toEqual([
    ...['/app-health/app/livez', '/app-health/app/readyz', '/app-health/app/startupz', '/app-health/db/startupz'],
    '/app-lifecycle/app/prestopz',
  ]);
  expect(containerOf(pod, 'app').lifecycle).toMatchObject({ postStart: { sleep: { seconds: 1 } } });
});

test('a probe of a named port is unchanged if the container does not declare the port (§4.1)', () => {
  const pod = injected(appPod({}, probe({ httpGet: { port: 'nowhere' } })));
  expect(containerOf(pod, 'app').readinessProbe).toEqual({ httpGet: { port: 'nowhere' } });
  expect(probesOf(pod)).toEqual({});
});

test('probes are redirected to the port in the annotation, even if the pod is injected again (§4.1)', () => {
  const injectedOnce = injected(
    appPod({ 'status.sidecar.istio.io/port': '18000' }, probe({ httpGet: { port: 80, path: '/r' } })),
  );
  expect(containerOf(injectedOnce, 'app').readinessProbe).toMatchObject({ httpGet: { port: 18000 } });
  const injectedTwice = injected(injectedOnce);
  expect(probesOf(injectedTwice)).toEqual({ '/app-health/app/readyz': { httpGet: { port: 80, path: '/r' } } });
  expect(injectedTwice).toEqual(injectedOnce);
});

test("a probe has the agent's scheme and host in the pod, and the original ones in the agent's settings (§4.1)", () => {
  const httpGet = { port: 443, path: '/r', scheme: 'HTTPS', host: 'example.com' };
  const pod = injected(appPod({}, probe({ httpGet })));
  expect(containerOf(pod, 'app').readinessProbe).toEqual({
    httpGet: { path: '/app-health/app/readyz', port: 15020, scheme: 'HTTP' },
  });
  expect(probesOf(pod)).toEqual({ '/app-health/app/readyz': { httpGet } });
});

test('a probe that names the status port is unchanged (§4.1)', () => {
  const ports = [{ name: 'status', containerPort: 15020 }];
  const pod = injected(appPod({}, { ports, ...probe({ httpGet: { port: 'status' } }) }));
  expect(containerOf(pod, 'app').readinessProbe).toEqual({ httpGet: { port: 'status' } });
});

test('injecting again also redirects the probes of containers that were added later (§4.1)', () => {
  const injectedOnce = injected(appPod({}, probe({ httpGet: { port: 80 } })));
  const addedContainer = { name: 'later', livenessProbe: { tcpSocket: { port: 90 } } };
  const pod = injected({
    ...injectedOnce,
    spec: { ...injectedOnce.spec, containers: [...injectedOnce.spec.containers, addedContainer] },
  });
  expect(probesOf(pod)).toEqual({
    '/app-health/app/readyz': { httpGet: { port: 80 } },
    '/app-health/later/livez': { tcpSocket: { port: 90 } },
  });
});

test('application metrics are merged for any spelling of the annotations unless scraping is disabled (§3.4)', () => {
  const scraped = injected(appPod({ 'prometheus/io.port': '9090', 'prometheus.io/scrape': 'maybe' }));
  expect(JSON.parse(String(environmentOf(scraped).ISTIO_PROMETHEUS_ANNOTATIONS))).toEqual({
    scrape: 'maybe',
    port: '9090',
  });
  const unscrapedPod = injected(appPod({ 'prometheus.io/scrape': 'false', 'prometheus.io/port': '9090' }));
  expect(unscrapedPod.metadata.annotations).toMatchObject({
    'prometheus.io/port': '9090',
    'prometheus.io/scrape': 'false',
  });
  const ownMetricsPod = injected(appPod({ 'prometheus.io/port': '15020', 'prometheus.io/path': '/own' }));
  expect(ownMetricsPod.metadata.annotations).toMatchObject({
    'prometheus.io/port': '15020',
    'prometheus.io/path': '/own',
  });
});

test.each([15_000, 15_001, 15_004, 15_006, 15_008, 15_021, 15_053, 15_090])(
  "metrics on the sidecar's port %i are rejected (§3.4)",
  (port) => {
    expect(errorsOf(appPod({ 'prometheus.io/port': String(port) }))).toEqual([
      { path: 'metadata.annotations["prometheus.io/port"]', code: 'FIELD_NOT_ALLOWED' },
    ]);
  },
);

const withProxy = (proxyPart: Json, app: Json = {}, annotations: Readonly<Record<string, string>> = {}): Json => ({
  metadata: { annotations },
  spec: {
    containers: [
      { name: 'app', ...app },
      { name: 'istio-proxy', ...proxyPart },
    ],
  },
});

test('a user-written istio-proxy becomes a native sidecar with its own probes and hooks (§4.2)', () => {
  const proxyPart = {
    livenessProbe: { tcpSocket: { port: 15021 } },
    lifecycle: { preStop: { sleep: { seconds: 5 } } },
  };
  const pod = injected(withProxy(proxyPart));
  expect(pod.spec.initContainers?.map(({ name }) => name)).toEqual(['istio-init', 'istio-proxy']);
  expect(containerOf(pod)).toMatchObject({ ...proxyPart, restartPolicy: 'Always' });
});

test('arguments of a user-written istio-proxy replace the generated ones, variables merge by name, and image auto is ignored (§4.3)', () => {
  const pod = injected(
    withProxy({
      image: 'auto',
      args: ['own'],
      env: [
        { name: 'A', value: '1' },
        { name: 'TRUST_DOMAIN', value: 'b.test' },
      ],
    }),
  );
  expect(containerOf(pod)).toMatchObject({ image: 'example.com/mesh/proxyv2:1.0', args: ['own'] });
  expect(environmentOf(pod)).toMatchObject({ A: '1', TRUST_DOMAIN: 'b.test', PILOT_CERT_PROVIDER: 'istiod' });
});

test('user-written fields are saved only at the first injection (§4.3)', () => {
  const injectedOnce = injected(withProxy({ args: ['own'] }));
  const savedOverrides = injectedOnce.metadata.annotations!['proxy.istio.io/overrides'];
  expect(JSON.parse(savedOverrides!)).toEqual({ containers: [{ name: 'istio-proxy', args: ['own'] }] });
  expect(injected(injectedOnce, { tag: '2.0' }).metadata.annotations!['proxy.istio.io/overrides']).toBe(savedOverrides);
});

test('redirection and its validation exclude the user of a user-written istio-proxy unless it is root (§4.3)', () => {
  const proxyPart = { securityContext: { runAsUser: 2_000, runAsGroup: 2_001 } };
  expect(flagOf(injected(withProxy(proxyPart)), '-u')).toBe('2000');
  const validated = injected(withProxy(proxyPart), { cni: { enabled: true, provider: 'default' } });
  expect(containerOf(validated, 'istio-validation').securityContext).toMatchObject({
    runAsUser: 2_000,
    runAsGroup: 2_001,
  });
  expect(flagOf(injected(withProxy({ securityContext: { runAsUser: 0 } })), '-u')).toBe('1337');
  // The group is excluded, because applications may run as root as well.
  expect(flagOf(injected(withProxy({ securityContext: { runAsUser: 0, runAsGroup: 2_001 } })), '-u')).toBe('2001');
});

test('a user-written istio-proxy always runs as root with TPROXY (§4.3, istio#51012)', () => {
  const tproxy = { 'sidecar.istio.io/interceptionMode': 'TPROXY' };
  const pod = injected(withProxy({ securityContext: { runAsUser: 2_000, runAsNonRoot: true } }, {}, tproxy));
  expect(containerOf(pod).securityContext).toMatchObject({ runAsUser: 0, runAsGroup: 1337, runAsNonRoot: false });
  expect(flagOf(pod, '-u')).toBe('1337');
});

test('a user of istio-proxy is ignored if an application container runs as the same user (§4.3, istio#52614)', () => {
  const sameUser = { securityContext: { runAsUser: 1_000_620_000 } };
  const identity = { proxyUid: 1_000_629_999, proxyGid: 1_000_629_999 };
  const pod = injected(withProxy(sameUser, sameUser), {}, identity);
  expect(containerOf(pod).securityContext).toMatchObject({ runAsUser: 1_000_629_999 });
  expect(flagOf(pod, '-u')).toBe('1000629999');
  expect(containerOf(pod, 'app').securityContext).toEqual({ runAsUser: 1_000_620_000 });
  expect(injected(pod, {}, identity)).toEqual(pod);
});

test('fields of a user-written istio-init override those of the template (§4.3)', () => {
  const proxyPart = { name: 'istio-init', resources: { limits: { cpu: '1' } }, args: ['istio-iptables', '-u', '9'] };
  const pod = injected({ spec: { containers: [{ name: 'app' }], initContainers: [proxyPart] } });
  expect(containerOf(pod, 'istio-init')).toMatchObject(proxyPart);
});

test('changed settings apply to an injected pod, and fields from other webhooks are kept (§4.5)', () => {
  const injectedOnce = injected(appPod());
  const sidecar = { name: 'logger', image: 'l:1' };
  const changedPod = {
    ...injectedOnce,
    spec: { ...injectedOnce.spec, containers: [...injectedOnce.spec.containers, sidecar] },
  };
  const pod = injected(changedPod, { tag: '2.0', nativeSidecars: false });
  expect(containerOf(pod).image).toBe('example.com/mesh/proxyv2:2.0');
  expect(pod.spec.containers.map(({ name }) => name)).toEqual(['app', 'logger', 'istio-proxy']);
  expect(pod.spec.initContainers?.map(({ name }) => name)).toEqual(['istio-init']);
});

test('metrics annotations from an earlier injector are removed only if they name the status port (§4.5)', () => {
  const status = JSON.stringify({ containers: ['istio-proxy'], revision: 'default' });
  const istioAnnotations = (port: string) => ({
    'sidecar.istio.io/status': status,
    ...{ 'prometheus.io/port': port, 'prometheus.io/path': '/stats/prometheus', 'prometheus.io/scrape': 'true' },
  });
  const injectedAgain = injected(withProxy({ image: 'old' }, {}, istioAnnotations('15020')));
  expect(environmentOf(injectedAgain)).not.toHaveProperty('ISTIO_PROMETHEUS_ANNOTATIONS');
  const proxyPart = injected(withProxy({ image: 'old' }, {}, istioAnnotations('9090')));
  expect(JSON.parse(String(environmentOf(proxyPart).ISTIO_PROMETHEUS_ANNOTATIONS))).toMatchObject({ port: '9090' });
});
