import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import * as E from 'fp-ts/lib/Either.js';
import { expect, test } from 'vitest';
import { sized } from '../../test/harness/size-of-run.ts';
import {
  containerOf,
  environmentOf,
  errorsOf,
  injected,
  podOf,
  injectionRequest as request,
  givenValues as values,
} from '../../test/injection/given-injection.ts';
import { defaultProxyConfig } from '../model/mesh/proxy-config.ts';
import { injectPod } from './inject.ts';
import type { Container, Json, Pod } from './pod/pod.ts';
import { defaultInjectionConfig, type InjectionValues } from './settings.ts';

const web: Json = {
  metadata: {
    generateName: 'web-7d9-',
    labels: { app: 'web', version: 'v1', 'pod-template-hash': '7d9' },
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-7d9', controller: true }],
  },
  spec: {
    containers: [
      {
        name: 'app',
        image: 'web:1',
        ports: [{ name: 'http', containerPort: 8080 }],
        readinessProbe: { httpGet: { port: 'http', path: '/ready', scheme: 'HTTPS' }, timeoutSeconds: 5 },
      },
    ],
    initContainers: [{ name: 'migrate', image: 'migrate:1' }],
    volumes: [{ name: 'data', emptyDir: {} }],
  },
};

const names = (containers: readonly Container[] = []): string[] => containers.map(({ name }) => name);

test("a native sidecar runs before the pod's init containers and after the redirection setup", () => {
  const { spec } = injected(web);
  expect(names(spec.initContainers)).toEqual(['istio-init', 'istio-proxy', 'migrate']);
  expect(names(spec.containers)).toEqual(['app']);
  expect(containerOf({ ...injected(web) })).toMatchObject({
    restartPolicy: 'Always',
    image: 'example.com/mesh/proxyv2:1.0',
    lifecycle: { preStop: { exec: { command: ['pilot-agent', 'request', '--debug-port=15020', 'POST', 'drain'] } } },
    securityContext: { runAsUser: 1337, runAsNonRoot: true, readOnlyRootFilesystem: true },
  });
  expect(containerOf(injected(web), 'istio-init')).not.toHaveProperty('restartPolicy');
});

test('a sidecar that is not native is the last container, or the first if the application waits for it', () => {
  const plain = injected(web, { nativeSidecars: false });
  expect(names(plain.spec.initContainers)).toEqual(['migrate', 'istio-init']);
  expect(names(plain.spec.containers)).toEqual(['app', 'istio-proxy']);
  const proxyConfigFor = () => ({ ...defaultProxyConfig, holdApplicationUntilProxyStarts: true });
  const heldPod = injected(web, { nativeSidecars: false }, { proxyConfigFor });
  expect(names(heldPod.spec.containers)).toEqual(['istio-proxy', 'app']);
  expect(containerOf(heldPod).lifecycle).toEqual({ postStart: { exec: { command: ['pilot-agent', 'wait'] } } });
});

test('labels, annotations and environment name the workload, not its ReplicaSet', () => {
  const pod = injected(web, { network: 'n1' });
  expect(pod.metadata.labels).toMatchObject({
    'security.istio.io/tlsMode': 'istio',
    'service.istio.io/canonical-name': 'web',
    'service.istio.io/canonical-revision': 'v1',
    'topology.istio.io/network': 'n1',
  });
  expect(pod.metadata.annotations).toMatchObject({
    'istio.io/rev': 'default',
    'kubectl.kubernetes.io/default-container': 'app',
    'prometheus.io/port': '15020',
    'prometheus.io/scrape': 'true',
    'prometheus.io/path': '/stats/prometheus',
  });
  expect(JSON.parse(pod.metadata.annotations!['sidecar.istio.io/status']!)).toMatchObject({
    initContainers: ['istio-init', 'istio-proxy'],
    containers: null,
    revision: 'default',
  });
  expect(environmentOf(pod)).toMatchObject({
    CA_ADDR: 'istiod.istio-system.svc:15012',
    ISTIO_META_WORKLOAD_NAME: 'web',
    ISTIO_META_OWNER: 'kubernetes://apis/apps/v1/namespaces/shop/deployments/web',
    ISTIO_META_POD_PORTS: '[{"name":"http","containerPort":8080}]',
    ISTIO_META_APP_CONTAINERS: 'app',
    ISTIO_META_NETWORK: 'n1',
    POD_NAME: { fieldRef: { fieldPath: 'metadata.name' } },
    ISTIO_CPU_LIMIT: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1' } },
  });
});

test('probes are redirected to the agent, with the original port and without a host', () => {
  const pod = injected(web);
  expect(containerOf(pod, 'app').readinessProbe).toEqual({
    httpGet: { path: '/app-health/app/readyz', port: 15020, scheme: 'HTTP' },
    timeoutSeconds: 5,
  });
  expect(JSON.parse(environmentOf(pod).ISTIO_KUBE_APP_PROBERS as string)).toEqual({
    '/app-health/app/readyz': { httpGet: { port: 8080, path: '/ready', scheme: 'HTTPS' }, timeoutSeconds: 5 },
  });
});

test('a probe is unchanged if it uses an undeclared port, the status port or a command', () => {
  const probes = {
    readinessProbe: { httpGet: { port: 'nowhere' } },
    livenessProbe: { tcpSocket: { port: 'status' } },
    startupProbe: { exec: { command: ['true'] } },
  };
  const ports = [{ name: 'status', containerPort: 15020 }];
  const pod = injected({ spec: { containers: [{ name: 'app', ports, ...probes }] } });
  expect(containerOf(pod, 'app')).toMatchObject(probes);
  expect(environmentOf(pod)).not.toHaveProperty('ISTIO_KUBE_APP_PROBERS');
});

test('fields of a user-written container istio-proxy override those of the template, and are saved', () => {
  const userProxy = {
    name: 'istio-proxy',
    image: 'auto',
    env: [{ name: 'CA_ADDR', value: 'ca:1' }],
    args: ['proxy', 'x'],
  };
  const pod = injected({ spec: { containers: [{ name: 'app' }, userProxy] } });
  const proxy = containerOf(pod);
  expect(proxy).toMatchObject({ image: 'example.com/mesh/proxyv2:1.0', args: ['proxy', 'x'] });
  expect(environmentOf(pod).CA_ADDR).toBe('ca:1');
  expect(JSON.parse(pod.metadata.annotations!['proxy.istio.io/overrides']!)).toEqual({ containers: [userProxy] });
});

test("the pull policy that the API server sets for image auto does not apply to the template's image", () => {
  const withPolicy = (image: string, imagePullPolicy: string, settings: Partial<InjectionValues> = {}) =>
    containerOf(injected({ spec: { containers: [{ name: 'istio-proxy', image, imagePullPolicy }] } }, settings));
  expect(withPolicy('auto', 'Always')).not.toHaveProperty('imagePullPolicy');
  expect(withPolicy('auto', 'Always', { imagePullPolicy: 'Never' })).toHaveProperty('imagePullPolicy', 'Never');
  expect(withPolicy('auto', 'Never')).toHaveProperty('imagePullPolicy', 'Never');
  expect(withPolicy('example.com/own:1', 'Always')).toMatchObject({
    ...{ image: 'example.com/own:1', imagePullPolicy: 'Always' },
  });
});

test('redirection excludes the user that a pod sets for its proxy', () => {
  const userProxy = { name: 'istio-proxy', image: 'auto', securityContext: { runAsUser: 2000 } };
  const { args = [] } = containerOf(injected({ spec: { containers: [{ name: 'app' }, userProxy] } }), 'istio-init');
  expect(args[args.indexOf('-u') + 1]).toBe('2000');
});

test('redirection uses nft if the values request it', () => {
  const argsOf = (changedValues: Partial<InjectionValues>) =>
    containerOf(injected(web, changedValues), 'istio-init').args;
  expect(argsOf({})).not.toContain('--native-nftables');
  expect(argsOf({ nativeNftables: true })).toContain('--native-nftables');
});

test('redirection with TPROXY runs the proxy as root with NET_ADMIN, and excludes its group', () => {
  const pod = injected({
    metadata: { annotations: { 'sidecar.istio.io/interceptionMode': 'TPROXY' } },
    spec: { containers: [{ name: 'app' }] },
  });
  expect(containerOf(pod).securityContext).toMatchObject({
    runAsUser: 0,
    runAsGroup: 1337,
    runAsNonRoot: false,
    capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] },
  });
  const { args = [] } = containerOf(pod, 'istio-init');
  expect([args[args.indexOf('-u') + 1], args[args.indexOf('-m') + 1]]).toEqual(['1337', 'TPROXY']);
});

test('a gateway has the role router and no redirection', () => {
  const pod = injected({
    metadata: { annotations: { 'inject.istio.io/templates': 'gateway' } },
    spec: { containers: [{ name: 'istio-proxy', image: 'auto', ports: [{ containerPort: 80 }] }] },
  });
  expect(pod.spec.initContainers).toBeUndefined();
  expect(containerOf(pod).args?.slice(0, 2)).toEqual(['proxy', 'router']);
  expect(containerOf(pod).ports?.map(({ containerPort }) => containerPort)).toEqual([80, 15090]);
  expect(pod.metadata.labels).not.toHaveProperty('security.istio.io/tlsMode');
  expect(pod.spec.securityContext).toMatchObject({
    sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }],
  });
});

test('invalid annotations are each reported by name', () => {
  const annotations = {
    'traffic.sidecar.istio.io/excludeInboundPorts': '80,http',
    'traffic.sidecar.istio.io/includeOutboundIPRanges': '10.0.0.0/99',
    'sidecar.istio.io/proxyCPU': 'many',
    'sidecar.istio.io/userVolume': '[]',
    'proxy.istio.io/config': 'concurrency: x',
    'sidecar.istio.io/logLevel': 'loud',
  };
  const errors = errorsOf({ metadata: { annotations }, spec: { containers: [{ name: 'app' }] } });
  expect(errors.map(({ path }) => path)).toEqual(
    Object.keys(annotations).map((name) => `metadata.annotations["${name}"]`),
  );
});

test.each([
  [
    'runs as the user of the sidecar',
    { name: 'app', image: 'web:1', securityContext: { runAsUser: 1337 } },
    'FIELD_NOT_ALLOWED',
  ],
  [
    'runs the proxy image with the user of the image',
    { name: 'app', image: 'example.com/mesh/proxyv2:1.0' },
    'FIELD_REQUIRED',
  ],
])(
  'an application container that %s is rejected, because its traffic would not be redirected',
  (_, container, code) => {
    expect(errorsOf({ spec: { containers: [container] } })).toEqual([
      { path: 'spec.containers[app].securityContext.runAsUser', code },
    ]);
    expect(
      errorsOf({
        metadata: { annotations: { 'sidecar.istio.io/interceptionMode': 'NONE' } },
        spec: { containers: [container] },
      }),
    ).toEqual([]);
  },
);

test('a pod is rejected if a volume has a sidecar name, a template is unknown, or metrics use a sidecar port', () => {
  const spec = { containers: [{ name: 'app' }] };
  const volumes = [{ name: 'istio-token', emptyDir: {} }];
  expect(errorsOf({ spec: { ...spec, volumes } })).toEqual([
    { path: 'spec.volumes[0].name', code: 'FIELD_NOT_ALLOWED' },
  ]);
  const templates = { 'inject.istio.io/templates': 'sidecars' };
  expect(errorsOf({ metadata: { annotations: templates }, spec })).toEqual([
    { path: 'metadata.annotations["inject.istio.io/templates"]', code: 'FIELD_VALUE_UNKNOWN' },
  ]);
  expect(errorsOf({ metadata: { annotations: { 'prometheus/io.port': '15090' } }, spec })).toEqual([
    { path: 'metadata.annotations["prometheus.io/port"]', code: 'FIELD_NOT_ALLOWED' },
  ]);
});

test('a probe, hook or variable of a user-written istio-proxy completely replaces that of the template (§4.3)', () => {
  const userProxy = {
    name: 'istio-proxy',
    image: 'auto',
    readinessProbe: { grpc: { port: 92 } },
    lifecycle: { preStop: { httpGet: { port: 80 } } },
    securityContext: { privileged: true },
    env: [{ name: 'CA_ADDR', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
  };
  const pod = injected({ spec: { containers: [{ name: 'app' }, userProxy] } });
  const { readinessProbe, lifecycle } = containerOf(pod);
  expect(readinessProbe).toMatchObject({ grpc: { port: 92 } });
  expect(readinessProbe).not.toHaveProperty('httpGet');
  expect(lifecycle).toEqual(userProxy.lifecycle);
  expect(containerOf(pod).securityContext).not.toHaveProperty('allowPrivilegeEscalation');
  expect(containerOf(pod).env?.filter(({ name }) => name === 'CA_ADDR')).toEqual(userProxy.env);
});

test('a pod that contains only a proxy gets no native sidecar, because it would have no containers left', () => {
  const { spec } = injected({ spec: { containers: [{ name: 'istio-proxy', image: 'auto' }] } });
  expect(names(spec.containers)).toEqual(['istio-proxy']);
});

test("NativeSidecars are used if a setting enables them or, without a setting, if the pod's kubelet supports them (§2.1)", () => {
  const oldKubelets = { supportsNativeSidecars: (node: string | undefined) => node === 'new' };
  const isNative = (...args: Parameters<typeof request>): boolean =>
    names(injected(...args).spec.initContainers).includes('istio-proxy');
  const containers = [{ name: 'app' }];
  const nativeAnnotation = { metadata: { annotations: { 'sidecar.istio.io/nativeSidecar': 'true' } } };
  expect(isNative({ spec: { containers } }, {}, oldKubelets)).toBe(false);
  expect(isNative({ spec: { containers, nodeName: 'new' } }, {}, oldKubelets)).toBe(true);
  expect(isNative({ spec: { containers } }, { nativeSidecars: true }, oldKubelets)).toBe(true);
  expect(isNative({ ...nativeAnnotation, spec: { containers } }, {}, oldKubelets)).toBe(true);
});

test('a pod is rejected if a container has the name of a sidecar init container, a mount has no volume, or a variable is invalid', () => {
  expect(errorsOf({ spec: { containers: [{ name: 'app' }, { name: 'istio-init' }] } })).toEqual([
    { path: 'spec.containers[istio-init].name', code: 'FIELD_NOT_ALLOWED' },
  ]);
  const annotated = (name: string, value: string) =>
    errorsOf({ metadata: { annotations: { [name]: value } }, spec: { containers: [{ name: 'app' }] } });
  expect(annotated('sidecar.istio.io/userVolumeMount', '{"x": {"mountPath": "/x"}}')).toEqual([
    { path: 'metadata.annotations["sidecar.istio.io/userVolumeMount"]', code: 'FIELD_VALUE_UNKNOWN' },
  ]);
  expect(annotated('sidecar.istio.io/userVolume', '{"Bad Name": {"emptyDir": {}}}')).toMatchObject([
    { path: 'metadata.annotations["sidecar.istio.io/userVolume"]' },
  ]);
  const limits = { 'sidecar.istio.io/proxyMemory': '64Mi', 'sidecar.istio.io/proxyMemoryLimit': '60M' };
  expect(errorsOf({ metadata: { annotations: limits }, spec: { containers: [{ name: 'app' }] } })).toMatchObject([
    { path: 'metadata.annotations["sidecar.istio.io/proxyMemoryLimit"]' },
  ]);
  expect(annotated('proxy.istio.io/config', 'proxyMetadata: {"A=B": c}')).toMatchObject([
    { path: 'metadata.annotations["proxy.istio.io/config"]' },
  ]);
});

test('templates from the mesh and built-in ones are merged in the order of the annotation', () => {
  const templates = { extra: { spec: { containers: [{ name: 'istio-proxy', env: [{ name: 'X', value: '1' }] }] } } };
  const settings = {
    config: { ...defaultInjectionConfig, templates, aliases: { both: ['sidecar', 'extra'] } },
    values,
    revision: 'v2',
  };
  const pod = injected(
    { metadata: { annotations: { 'inject.istio.io/templates': 'both' } }, spec: { containers: [{ name: 'app' }] } },
    {},
    { settings: { ...settings, values: { ...values, nativeSidecars: false } } },
  );
  expect(environmentOf(pod)).toMatchObject({ X: '1', CA_ADDR: 'istiod-v2.istio-system.svc:15012' });
});

const handler = fc.oneof(
  fc.record({
    httpGet: fc.record({
      port: fc.constantFrom<string | number>(80, 'http', 'none', 15020, 15021),
      path: fc.constantFrom('/', '/app-health/app/readyz'),
    }),
  }),
  fc.record({ tcpSocket: fc.record({ port: fc.constantFrom<string | number>(90, 'http', '91') }) }),
  fc.record({ grpc: fc.record({ port: fc.constant(92) }), timeoutSeconds: fc.constantFrom(1, 5) }),
  fc.record({ exec: fc.constant({ command: ['x'] }) }),
);
const optional = { requiredKeys: ['name'] as 'name'[] };
const container = (name: fc.Arbitrary<string>): fc.Arbitrary<Container> =>
  fc.record(
    {
      name,
      image: fc.constantFrom('auto', 'web:1'),
      ports: fc.constantFrom([{ name: 'http', containerPort: 8080 }], [{ containerPort: 9 }]),
      readinessProbe: handler,
      livenessProbe: handler,
      lifecycle: fc.record({ preStop: handler }),
      env: fc.constantFrom([{ name: 'A', value: '1' }], []),
      securityContext: fc.record({ runAsUser: fc.constantFrom(0, 1000, 2000) }),
      restartPolicy: fc.constant('Always'),
    },
    optional,
  ) as fc.Arbitrary<Container>;
const annotations = fc.record(
  {
    'inject.istio.io/templates': fc.constantFrom('sidecar', 'gateway', 'grpc-agent', 'mine', 'sidecar,mine'),
    'sidecar.istio.io/nativeSidecar': fc.constantFrom('true', 'false'),
    'sidecar.istio.io/interceptionMode': fc.constantFrom('REDIRECT', 'TPROXY', 'NONE'),
    'status.sidecar.istio.io/port': fc.constantFrom('15020', '18000', '0'),
    'prometheus.io/port': fc.constantFrom('9090', '15020', 'x'),
    'prometheus.io/path': fc.constantFrom('/metrics', '/stats/prometheus'),
    'prometheus.io/scrape': fc.constantFrom('true', 'false', 'maybe'),
    'prometheus.istio.io/merge-metrics': fc.constantFrom('true', 'false'),
    'proxy.istio.io/config': fc.constantFrom('holdApplicationUntilProxyStarts: true', 'proxyMetadata: {A: b}', ''),
    'sidecar.istio.io/userVolume': fc.constant('{"extra": {"emptyDir": {}}}'),
    'sidecar.istio.io/bootstrapOverride': fc.constant('boot'),
    'sidecar.istio.io/rewriteAppHTTPProbers': fc.constantFrom('true', 'false'),
  },
  { requiredKeys: [] },
);
const name = fc.constantFrom('app', 'b', 'istio-proxy', 'istio-init', 'sleep');
const keyByName = { selector: ({ name: containerName }: Container) => containerName };
const randomPod = fc
  .record({
    annotations,
    labels: fc.constantFrom({}, { app: 'a' }, { 'app.kubernetes.io/name': 'x'.repeat(80) }),
    all: fc.uniqueArray(container(name), { ...keyByName, minLength: 1, maxLength: 5 }),
    split: fc.nat(4),
    volumes: fc.constantFrom([], [{ name: 'data', emptyDir: {} }]),
  })
  .map(({ annotations: podAnnotations, labels, all, split, volumes }) => {
    const first = Math.max(1, split);
    return {
      metadata: { name: 'p', labels, annotations: podAnnotations },
      spec: { containers: all.slice(0, first), initContainers: all.slice(first), volumes },
    };
  });
const randomValues = fc.record(
  {
    nativeSidecars: fc.boolean(),
    statusPort: fc.constantFrom(15020, 18020),
    network: fc.constantFrom('', 'n1'),
    cni: fc.constantFrom(
      { enabled: true, provider: 'default' },
      { enabled: true, provider: 'multus' },
      { enabled: false, provider: '' },
    ),
    imagePullSecrets: fc.constantFrom([], ['pull']),
  },
  { requiredKeys: [] },
);
const customTemplates = {
  mine: {
    metadata: { labels: { m: '1' } },
    spec: {
      containers: [
        { name: 'app', env: [{ name: 'M', value: '1' }] },
        { name: 'helper', image: 'h:1' },
      ],
    },
  },
};

const runs = sized({ short: 500, full: 10_000 });

test('injecting a pod twice has the same result as once, for any pod, template list, status port and revision', {
  timeout: 600_000,
}, () => {
  let count = 0;
  fc.assert(
    fc.property(
      randomPod,
      randomValues,
      randomValues,
      fc.constantFrom('', 'v2'),
      (pod, firstValues, secondValues, revision) => {
        const settings = (changedValues: Partial<InjectionValues>) => ({
          config: { ...defaultInjectionConfig, templates: customTemplates },
          values: { ...values, ...changedValues },
          revision,
        });
        const inject = (injectedPod: Pod, changedValues: Partial<InjectionValues>) =>
          injectPod({ ...request(web, {}, { settings: settings(changedValues) }), pod: injectedPod });
        const injectedOnce = inject(podOf(pod), secondValues);
        const injectedEarlier = inject(podOf(pod), firstValues);
        if (E.isLeft(injectedOnce) || E.isLeft(injectedEarlier)) return;
        count++;
        for (const pod of [injectedOnce.right, injectedEarlier.right]) {
          const injectedAgain = inject(pod, secondValues);
          // Calls `toEqual` only for a difference, because it costs ten times as much.
          if (!isDeepStrictEqual(injectedAgain, injectedOnce)) expect(injectedAgain).toEqual(injectedOnce);
        }
      },
    ),
    { numRuns: runs },
  );
  expect(count).toBeGreaterThan(runs / 2);
});
