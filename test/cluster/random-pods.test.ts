/**
 * Random pods in a real API server, as dry runs: each accepted pod is also accepted with a sidecar, or the injector rejects it and names the field.
 * Pods have injection annotations, containers that override the sidecar, and every template.
 */
import fc from 'fast-check';
import * as E from 'fp-ts/lib/Either.js';
import { beforeAll, expect, it } from 'vitest';
import { ApiError } from '../../src/discovery/kubernetes/api-failure.ts';
import { resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import { inject } from '../../src/injection/injector.ts';
import { readPod } from '../../src/injection/pod/pod.ts';
import { defaultInjectionConfig, defaultInjectionValues } from '../../src/injection/settings.ts';
import { defaultMeshConfig } from '../../src/model/mesh/mesh-config.ts';
import { proxyConfigFor } from '../../src/model/push-context/workload-proxy-config.ts';
import { sized } from '../harness/size-of-run.ts';
import { givenCluster } from './given-cluster.ts';

const cluster = givenCluster();
const neverAborted = new AbortController().signal;
let serviceAccountName: string;
beforeAll(async () => {
  serviceAccountName = await cluster.account();
});

const count = sized({ quick: 100, short: 300, full: 10_000 });
/** Number of concurrent requests. */
const lanes = 16;

/** Fields are absent more often than present, because a pod with every field is never valid. */
function optional<T>(of: fc.Arbitrary<T>, absentWeight = 3): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: 1, arbitrary: of }, { weight: absentWeight, arbitrary: fc.constant(undefined) });
}
/** An object in which only the named fields are always present. */
function fields(
  of: Readonly<Record<string, fc.Arbitrary<unknown>>>,
  required: readonly string[] = [],
  absentWeight = 3,
): fc.Arbitrary<Record<string, unknown>> {
  const entries = Object.entries(of).map(([key, value]) => [
    key,
    required.includes(key) ? value : optional(value, absentWeight),
  ]);
  return fc.record(Object.fromEntries(entries) as typeof of).map((object) => JSON.parse(JSON.stringify(object)));
}

const handler = fc.oneof(
  fc.record({
    httpGet: fields(
      {
        port: fc.constantFrom<string | number>(80, 'http', 15020, 15021),
        path: fc.constantFrom('/', '/healthz?x=1'),
        scheme: fc.constantFrom('HTTP', 'HTTPS'),
        host: fc.constantFrom('localhost', '10.0.0.1'),
        httpHeaders: fc.constant([{ name: 'x-probe', value: 'yes' }]),
      },
      ['port'],
    ),
  }),
  fc.record({ tcpSocket: fc.record({ port: fc.constantFrom<string | number>(90, 'http') }) }),
  fc.record({ exec: fc.constant({ command: ['true'] }) }),
);
const grpc = fc.record({ grpc: fc.record({ port: fc.constant(92) }) });
const probe = fc
  .tuple(
    fc.oneof(handler, grpc),
    fields({ timeoutSeconds: fc.nat(3).map((n) => n + 1), periodSeconds: fc.constant(5) }),
  )
  .map(([of, times]) => ({ ...of, ...times }));

const security = fields({
  runAsUser: fc.constantFrom(0, 1000, 1337, 2000),
  runAsGroup: fc.constantFrom(0, 1337),
  runAsNonRoot: fc.constant(false),
  privileged: fc.constant(true),
  readOnlyRootFilesystem: fc.boolean(),
  capabilities: fc.constant({ add: ['NET_ADMIN'], drop: ['ALL'] }),
});
const resources = fc.constantFrom(
  { requests: { cpu: '10m', memory: '16Mi' } },
  { limits: { cpu: '1', memory: '1Gi' } },
  { requests: { cpu: '500m' }, limits: { cpu: 2 } },
  {},
);

const container = (name: fc.Arbitrary<string>) =>
  fields(
    {
      name,
      image: fc.constantFrom('web:1', 'auto', 'example.com/mesh/proxyv2:1.0'),
      command: fc.constant(['serve']),
      args: fc.constant(['--port', '80']),
      ports: fc.constantFrom(
        [{ name: 'http', containerPort: 8080 }],
        [{ containerPort: 9, protocol: 'UDP' }],
        [{ name: 'http', containerPort: 80, hostPort: 80 }, { containerPort: 15090 }],
      ),
      env: fc.constantFrom(
        [{ name: 'A', value: '1' }],
        [{ name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
        [{ name: 'PROXY_CONFIG', value: '{}' }],
      ),
      envFrom: fc.constant([{ configMapRef: { name: 'settings' } }]),
      volumeMounts: fc.constantFrom(
        [{ name: 'data', mountPath: '/data' }],
        [{ name: 'data', mountPath: '/etc/istio/proxy' }],
      ),
      resources,
      securityContext: security,
      imagePullPolicy: fc.constantFrom('Always', 'IfNotPresent'),
      terminationMessagePolicy: fc.constant('File'),
      tty: fc.boolean(),
    },
    ['name', 'image'],
  );
const application = fc
  .tuple(
    container(fc.constantFrom('app', 'b', 'c', 'istio-proxy', 'istio-validation', 'a'.repeat(63))),
    fields({ readinessProbe: probe, livenessProbe: probe, startupProbe: probe }),
    optional(fc.record({ lifecycle: fc.record({ preStop: handler }) })),
  )
  .map((fieldGroups) => Object.assign({}, ...fieldGroups) as unknown as { name: string });
const initContainer = fc
  .tuple(
    container(fc.constantFrom('init', 'init-b', 'istio-init', 'helper')),
    optional(
      fc.oneof(
        fc.constant({ restartPolicy: 'Always' }),
        probe.map((readinessProbe) => ({ restartPolicy: 'Always', readinessProbe })),
      ),
    ),
  )
  .map((fieldGroups) => Object.assign({}, ...fieldGroups) as unknown as { name: string });

const annotations = fields(
  {
    'inject.istio.io/templates': fc.constantFrom('sidecar', 'gateway', 'grpc-agent', 'mine', 'sidecar,mine', 'other'),
    'sidecar.istio.io/nativeSidecar': fc.constantFrom('true', 'false'),
    'sidecar.istio.io/interceptionMode': fc.constantFrom('REDIRECT', 'TPROXY', 'NONE'),
    'sidecar.istio.io/proxyCPU': fc.constantFrom('100m', '1', 'many'),
    'sidecar.istio.io/proxyCPULimit': fc.constantFrom('200m', '50m'),
    'sidecar.istio.io/proxyMemory': fc.constant('64Mi'),
    'sidecar.istio.io/proxyMemoryLimit': fc.constantFrom('1Gi', '32Mi'),
    'sidecar.istio.io/proxyImage': fc.constantFrom('example.com/other/proxy:2', 'proxy'),
    'sidecar.istio.io/proxyImageType': fc.constantFrom('distroless', 'a b'),
    'sidecar.istio.io/bootstrapOverride': fc.constantFrom('boot', 'Boot!'),
    'sidecar.istio.io/userVolume': fc.constantFrom(
      '{"extra": {"emptyDir": {}}}',
      '{"extra": {}}',
      '{"extra": {"nothing": {}}}',
      '{"Bad Name": {"emptyDir": {}}}',
      '{"extra": 1}',
    ),
    'sidecar.istio.io/userVolumeMount': fc.constantFrom(
      '{"extra": {"mountPath": "/extra"}}',
      '{"data": {"mountPath": "/data"}}',
      '{"extra": {}}',
      '{"absent": {"mountPath": "/absent"}}',
    ),
    'sidecar.istio.io/logLevel': fc.constantFrom('debug', 'loud'),
    'sidecar.istio.io/capNetBindService': fc.constantFrom('true', 'false'),
    'sidecar.istio.io/rewriteAppHTTPProbers': fc.constantFrom('true', 'false'),
    'status.sidecar.istio.io/port': fc.constantFrom('15020', '18000', '0', '70000'),
    'readiness.status.sidecar.istio.io/initialDelaySeconds': fc.constantFrom('0', '9999999999'),
    'readiness.status.sidecar.istio.io/periodSeconds': fc.constantFrom('0', '5'),
    'readiness.status.sidecar.istio.io/failureThreshold': fc.constantFrom('0', '5'),
    'traffic.sidecar.istio.io/excludeInboundPorts': fc.constantFrom('80,81', 'x'),
    'traffic.sidecar.istio.io/includeOutboundIPRanges': fc.constantFrom('*', '10.0.0.0/8', '10.0.0.0/99'),
    'prometheus.io/port': fc.constantFrom('9090', '15020', 'x'),
    'prometheus.io/scrape': fc.constantFrom('true', 'maybe'),
    'proxy.istio.io/config': fc.constantFrom(
      'holdApplicationUntilProxyStarts: true',
      'proxyMetadata: {A: b, "1 2": c}',
      'proxyMetadata: {"A=B": c}',
      'interceptionMode: TPROXY',
      'concurrency: x',
      'image: {imageType: debug}',
    ),
  },
  [],
  14,
);

const labels = fc.constantFrom(
  {},
  { app: 'web' },
  { 'app.kubernetes.io/name': 'x'.repeat(63) },
  { app: '', version: '' },
  { 'topology.istio.io/network': 'n9' },
);
const names = { selector: ({ name }: { name: string }) => name };
const podSecurity = fields({
  runAsUser: fc.constantFrom(0, 1337, 2000),
  runAsNonRoot: fc.constant(true),
  fsGroup: fc.constant(1),
  sysctls: fc.constant([{ name: 'net.ipv4.ip_unprivileged_port_start', value: '1' }]),
  seccompProfile: fc.constant({ type: 'RuntimeDefault' }),
});
const otherFields = fields(
  {
    securityContext: podSecurity,
    imagePullSecrets: fc.constant([{ name: 'pull' }]),
    restartPolicy: fc.constantFrom('Always', 'OnFailure', 'Never'),
    terminationGracePeriodSeconds: fc.nat(60),
    shareProcessNamespace: fc.constant(true),
    hostPID: fc.constant(true),
    hostUsers: fc.constant(false),
    os: fc.constantFrom({ name: 'linux' }, { name: 'windows' }),
    dnsPolicy: fc.constantFrom('Default', 'ClusterFirst'),
    automountServiceAccountToken: fc.constant(false),
    nodeName: fc.constant('node-1'),
    resources: fc.constantFrom(
      { requests: { cpu: '50m', memory: '64Mi' }, limits: { cpu: '100m', memory: '128Mi' } },
      { limits: { cpu: '8', memory: '8Gi' } },
    ),
  },
  [],
  8,
);
const volumes = fc.constantFrom(
  [{ name: 'data', emptyDir: {} }],
  [
    { name: 'data', emptyDir: {} },
    { name: 'istio-data', emptyDir: {} },
  ],
);

const randomPod = fc
  .record({
    annotations,
    labels,
    containers: fc.uniqueArray(application, { ...names, minLength: 1, maxLength: 3 }),
    initContainers: optional(fc.uniqueArray(initContainer, { ...names, maxLength: 3 })),
    volumes,
    rest: otherFields,
  })
  .map(({ annotations: writtenAnnotations, labels: podLabels, rest: otherMetadata, ...spec }) => ({
    metadata: { name: 'random', labels: podLabels, annotations: writtenAnnotations },
    spec: { ...otherMetadata, ...JSON.parse(JSON.stringify(spec)), serviceAccountName },
  }));

const randomSettings = fc
  .record({
    nativeSidecars: fc.boolean(),
    network: fc.constantFrom('', 'n1'),
    imagePullSecrets: fc.constantFrom([], ['pull', 'other']),
    privileged: fc.boolean(),
    cni: fc.constantFrom({ enabled: true, provider: 'multus' }, { enabled: false, provider: 'default' }),
  })
  .map((changedSettings) => ({
    config: {
      ...defaultInjectionConfig,
      templates: { mine: { spec: { containers: [{ name: 'extra', image: 'extra:1' }] } } },
    },
    values: { ...defaultInjectionValues, hub: 'example.com/mesh', tag: '1.0', ...changedSettings },
    revision: '',
  }));

async function rejectionOf(pod: object): Promise<string | undefined> {
  const body = { apiVersion: 'v1', kind: 'Pod', ...pod };
  const target = { resource: resourceOf('Pod'), namespace: cluster.namespace } as const;
  try {
    await cluster.admin.request(
      { method: 'POST', ...target, body, query: { dryRun: 'All' }, timeoutMs: 60_000 },
      neverAborted,
    );
    return undefined;
  } catch (error) {
    if (error instanceof ApiError && error.failure.kind === 'status') return error.message;
    throw error;
  }
}

/** The pod limits all of its containers together, and the API server reports how much the sidecar lacks. */
function exceedsPodResources(rejection: string): boolean {
  const [, errors = ''] = /is invalid: \[?(.*?)\]? \[API_REQUEST_REJECTED\]$/.exec(rejection) ?? [];
  const errorTexts = errors.split(/, (?=spec\.)/);
  return errorTexts.every((error) => /^spec\.resources\..*(aggregate container requests|pod limits) of/.test(error));
}

it(`the API server accepts ${count} random pods with their sidecar, or the injector names the field that prevents this`, {
  timeout: 1_800_000,
}, async () => {
  const cases = fc.sample(fc.tuple(randomPod, randomSettings), { numRuns: count, seed: 40 });
  const problems = new Map<string, object>();
  const outcomes = { invalid: 0, skipped: 0, rejected: 0, accepted: 0 };
  const remainingCases = cases.values();
  const lane = async (): Promise<void> => {
    for (const [writtenPod, settings] of remainingCases) {
      if ((await rejectionOf(writtenPod)) !== undefined) {
        outcomes.invalid++;
        continue;
      }
      const pod = readPod(writtenPod);
      if (E.isLeft(pod)) throw new Error('a pod that the API server accepts was not read');
      const mesh = defaultMeshConfig;
      const injector = {
        ...{ settings, mesh },
        proxyConfigFor: (workload: Parameters<typeof proxyConfigFor>[2]) =>
          proxyConfigFor([], mesh, workload).proxyConfig,
      };
      const injection = inject(injector, pod.right, cluster.namespace);
      if (injection.outcome === 'skipped') outcomes.skipped++;
      else if (E.isLeft(injection.pod)) {
        outcomes.rejected++;
        for (const { path, message } of injection.pod.left)
          if (path === '' || message === '') problems.set(`unclear: ${path} ${message}`, writtenPod);
      } else {
        const rejection = await rejectionOf(injection.pod.right);
        outcomes.accepted++;
        if (rejection !== undefined && !exceedsPodResources(rejection))
          problems.set(rejection, { written: writtenPod, settings: settings.values.nativeSidecars });
      }
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  expect([...problems].slice(0, 5).map(([rejection, pod]) => `${rejection} ← ${JSON.stringify(pod)}`)).toEqual([]);
  expect(outcomes.accepted).toBeGreaterThan(count / 20);
  expect(outcomes.rejected).toBeGreaterThan(0);
});
