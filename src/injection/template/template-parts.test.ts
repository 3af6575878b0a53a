import { expect, test } from 'vitest';
import {
  appPod,
  containerOf,
  environmentOf,
  errorsOf,
  flagOf,
  injected,
  injectionRequest,
} from '../../../test/injection/given-injection.ts';
import { defaultMeshConfig } from '../../model/mesh/mesh-config.ts';
import { defaultProxyConfig } from '../../model/mesh/proxy-config.ts';
import { defaultInjectionConfig, type InjectionValues } from '../settings.ts';

const annotation = (name: string, value: string) => ({ [`sidecar.istio.io/${name}`]: value });
const imageOf = (...args: Parameters<typeof injected>) => containerOf(injected(...args)).image;

test.each<[string, Record<string, string>, Partial<InjectionValues>, string]>([
  ['no variant', {}, {}, 'example.com/mesh/proxyv2:1.0'],
  ['a variant', {}, { variant: 'distroless' }, 'example.com/mesh/proxyv2:1.0-distroless'],
  ['the variant default', {}, { variant: 'default' }, 'example.com/mesh/proxyv2:1.0'],
  ['a variant of the tag', {}, { tag: '1.0-debug', variant: 'distroless' }, 'example.com/mesh/proxyv2:1.0-distroless'],
  [
    'the variant default before that of the tag',
    {},
    { tag: '1.0-debug', variant: 'default' },
    'example.com/mesh/proxyv2:1.0',
  ],
  [
    'an annotation before the variant',
    annotation('proxyImageType', 'debug'),
    { variant: 'distroless' },
    'example.com/mesh/proxyv2:1.0-debug',
  ],
  ['an annotation with a name', annotation('proxyImage', 'mine'), {}, 'example.com/mesh/mine:1.0'],
  [
    'an annotation with a complete reference',
    annotation('proxyImage', 'a.test/mine:2'),
    { variant: 'debug' },
    'a.test/mine:2',
  ],
  ['a value with a complete reference', {}, { image: 'a.test/mine:2', variant: 'debug' }, 'a.test/mine:2'],
])('ProxyImage is built from %s (§2.1)', (_, annotations, values, image) => {
  expect(imageOf(appPod(annotations), values)).toBe(image);
});

test("ProxyImage has the ProxyConfig's image type unless an annotation overrides it (§2.1)", () => {
  const proxyConfigFor = () => ({ ...defaultProxyConfig, image: { imageType: 'distroless' } });
  expect(imageOf(appPod(), { variant: 'debug' }, { proxyConfigFor })).toBe('example.com/mesh/proxyv2:1.0-distroless');
  expect(imageOf(appPod(annotation('proxyImageType', 'default')), {}, { proxyConfigFor })).toBe(
    'example.com/mesh/proxyv2:1.0',
  );
});

test("ProxyUID of the namespace is the proxy's user, which redirection excludes (§2.1)", () => {
  const pod = injected(appPod(), {}, { proxyUid: 1_000_629_999, proxyGid: 1_000_629_998 });
  expect(containerOf(pod).securityContext).toMatchObject({ runAsUser: 1_000_629_999, runAsGroup: 1_000_629_998 });
  expect(flagOf(pod, '-u')).toBe('1000629999');
});

test("ProxyConfig is merged from the mesh, the objects and the pod's annotation (§2.1)", () => {
  const annotations = { 'proxy.istio.io/config': 'concurrency: 3' };
  expect(JSON.parse(String(environmentOf(injected(appPod(annotations))).PROXY_CONFIG))).toEqual({ concurrency: 3 });
});

test('probes of the proxy allow 10 minutes to start, and fail after 1 minute from then on (§3.1)', () => {
  const { readinessProbe, startupProbe } = containerOf(injected(appPod()));
  const httpGet = { path: '/healthz/ready', port: 15021 };
  expect(readinessProbe).toEqual({
    ...{ httpGet, initialDelaySeconds: 0, periodSeconds: 15, timeoutSeconds: 3, failureThreshold: 4 },
  });
  expect(startupProbe).toEqual({ httpGet, periodSeconds: 1, timeoutSeconds: 3, failureThreshold: 600 });
});

test('the environment contains limits and the node, from fields of the pod (§3.1)', () => {
  const environment = environmentOf(injected(appPod()));
  expect(environment).toMatchObject({
    ISTIO_CPU_LIMIT: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1' } },
    GOMEMLIMIT: { resourceFieldRef: { resource: 'limits.memory', divisor: '1' } },
    ISTIO_META_NODE_NAME: { fieldRef: { fieldPath: 'spec.nodeName' } },
  });
});

test('the canonical name label has at most 63 characters, without separators at its ends (§3.1)', () => {
  const app = `${'a'.repeat(62)}-tail`;
  const pod = injected({ metadata: { labels: { app } }, spec: { containers: [{ name: 'app' }] } });
  expect(pod.metadata.labels).toMatchObject({ 'service.istio.io/canonical-name': 'a'.repeat(62) });
});

test('the workload name is taken from the label, or else from the controller (§3.1)', () => {
  const labels = { 'service.istio.io/workload-name': 'cart' };
  expect(
    environmentOf(injected({ metadata: { name: 'p', labels }, spec: { containers: [{ name: 'app' }] } })),
  ).toMatchObject({
    ISTIO_META_WORKLOAD_NAME: 'cart',
  });
});

test('the token is always projected for audience istio-ca, and the revocation list is optional (§3.1)', () => {
  const volumes = injected(appPod()).spec.volumes ?? [];
  expect(volumes).toContainEqual({
    name: 'istio-token',
    projected: {
      sources: [{ serviceAccountToken: { path: 'istio-token', expirationSeconds: 43_200, audience: 'istio-ca' } }],
    },
  });
  expect(volumes).toContainEqual({ name: 'istio-ca-crl', configMap: { name: 'istio-ca-crl', optional: true } });
  expect(volumes).toContainEqual({ name: 'istiod-ca-cert', configMap: { name: 'istio-ca-root-cert' } });
  expect(containerOf(injected(appPod())).volumeMounts).toContainEqual({
    ...{ name: 'istio-ca-crl', mountPath: '/var/run/secrets/istio/crl' },
  });
});

test("the validation runs with CNI as the namespace's user, and the pod always has the included-ports annotation (§3.1)", () => {
  const cni = { enabled: true, provider: 'default' };
  const pod = injected(appPod(), { cni }, { proxyUid: 5_000, proxyGid: 5_001 });
  expect(containerOf(pod, 'istio-validation')).toMatchObject({
    ...{ securityContext: { runAsUser: 5_000, runAsGroup: 5_001, runAsNonRoot: true } },
    args: expect.arrayContaining(['--run-validation', '--skip-rule-apply']),
  });
  expect(pod.metadata.annotations).toMatchObject({
    'traffic.sidecar.istio.io/includeInboundPorts': '*',
    'traffic.sidecar.istio.io/excludeInboundPorts': '15020',
  });
});

test("the Multus plugin is added once to the pod's networks (§3.1)", () => {
  const cni = { enabled: true, provider: 'multus' };
  const key = 'k8s.v1.cni.cncf.io/networks';
  const networksOf = (value?: string) =>
    injected(appPod(value === undefined ? {} : { [key]: value }), { cni }).metadata.annotations?.[key];
  expect(networksOf()).toBe('default/istio-cni');
  expect(networksOf('storage')).toBe('storage, default/istio-cni');
  expect(networksOf('[{"name": "storage"}]')).toBe(
    '[{"name": "storage"}, {"name": "istio-cni", "namespace": "default"}]',
  );
  expect(networksOf('storage, default/istio-cni')).toBe('storage, default/istio-cni');
});

test('a pod in mode NONE has no init container except a native proxy (§3.1)', () => {
  const pod = injected(appPod(annotation('interceptionMode', 'NONE')));
  expect(pod.spec.initContainers?.map(({ name }) => name)).toEqual(['istio-proxy']);
  const plain = injected(appPod(annotation('interceptionMode', 'NONE')), { nativeSidecars: false });
  expect(plain.spec.initContainers).toBeUndefined();
});

test('a container never has an fsGroup, and istio-init has no restartPolicy (§3.1)', () => {
  const pod = injected(appPod());
  expect(JSON.stringify(pod)).not.toContain('fsGroup');
  expect(containerOf(pod, 'istio-init')).not.toHaveProperty('restartPolicy');
  expect(containerOf(pod)).toHaveProperty('restartPolicy', 'Always');
});

test('quantities in annotations must not contain control characters (§3.1)', () => {
  expect(errorsOf(appPod(annotation('proxyCPU', '1\n')))).toMatchObject([{ code: 'FIELD_FORMAT_INVALID' }]);
});

test('an annotation for resources replaces all resource values of the proxy and the init container (§3.2)', () => {
  const pod = injected(appPod(annotation('proxyMemory', '1Gi')));
  const resources = { requests: { memory: '1Gi' } };
  expect([containerOf(pod).resources, containerOf(pod, 'istio-init').resources]).toEqual([resources, resources]);
});

test('the defaults of the chart apply (§3.2)', () => {
  const pod = injected(appPod());
  const proxy = containerOf(pod);
  expect(proxy.resources).toEqual({
    requests: { cpu: '100m', memory: '128Mi' },
    limits: { cpu: '2000m', memory: '1024Mi' },
  });
  expect(proxy.args).toEqual([
    ...['proxy', 'sidecar', '--domain', '$(POD_NAMESPACE).svc.cluster.local', '--proxyLogLevel=warning'],
    ...['--proxyComponentLogLevel=misc:error', '--log_output_level=default:info'],
  ]);
  expect([flagOf(pod, '-i'), flagOf(pod, '-b'), flagOf(pod, '-d')]).toEqual(['*', '*', '15090,15021,15020']);
});

test("CA_ADDR is the configured value, or else the revision's control plane in its namespace (§3.2)", () => {
  const addressOf = (revision: string, values: Partial<InjectionValues> = {}) => {
    const { settings } = injectionRequest(appPod(), values);
    return environmentOf(injected(appPod(), {}, { settings: { ...settings, revision } })).CA_ADDR;
  };
  expect(addressOf('')).toBe('istiod.istio-system.svc:15012');
  expect(addressOf('canary', { istioNamespace: 'mesh' })).toBe('istiod-canary.mesh.svc:15012');
  expect(addressOf('canary', { caAddress: 'ca.test:1' })).toBe('ca.test:1');
});

test('ISTIO_META_OWNER contains the namespace default if the namespace is unknown (§3.2)', () => {
  expect(environmentOf(injected(appPod(), {}, { namespace: '' })).ISTIO_META_OWNER).toBe(
    'kubernetes://apis/v1/namespaces/default/pods/p',
  );
});

test('the mesh ID is the configured value, or else the trust domain (§3.2)', () => {
  const mesh = { ...defaultMeshConfig, trustDomain: 'a.test' };
  expect(environmentOf(injected(appPod(), {}, { mesh })).ISTIO_META_MESH_ID).toBe('a.test');
  expect(environmentOf(injected(appPod(), { meshId: 'm1' }, { mesh })).ISTIO_META_MESH_ID).toBe('m1');
});

test("ports and names are those of the application's containers (§3.2)", () => {
  const ports = [{ name: 'http', containerPort: 80, protocol: 'TCP' }, { containerPort: 81 }];
  const environment = environmentOf(
    injected({ spec: { containers: [{ name: 'app', ports }, { name: 'b' }, { name: 'istio-proxy', image: 'auto' }] } }),
  );
  expect(JSON.parse(String(environment.ISTIO_META_POD_PORTS))).toEqual(ports);
  expect(environment.ISTIO_META_APP_CONTAINERS).toBe('app,b');
});

test('proxyMetadata is added to the environment of the proxy and init container, after generated variables (§3.2)', () => {
  const annotations = { 'proxy.istio.io/config': 'proxyMetadata: {CA_ADDR: ca.test:1}' };
  const pod = injected(appPod(annotations));
  expect(environmentOf(pod).CA_ADDR).toBe('ca.test:1');
  expect(environmentOf(pod, 'istio-init')).toEqual({ CA_ADDR: 'ca.test:1' });
});

test("a bootstrap override's ConfigMap is mounted, and the agent receives the path of its file (§3.2)", () => {
  const pod = injected(appPod(annotation('bootstrapOverride', 'boot')));
  expect(pod.spec.volumes).toContainEqual({ name: 'custom-bootstrap-volume', configMap: { name: 'boot' } });
  expect(containerOf(pod).volumeMounts).toContainEqual({
    ...{ name: 'custom-bootstrap-volume', mountPath: '/etc/istio/custom-bootstrap' },
  });
  expect(environmentOf(pod).ISTIO_BOOTSTRAP_OVERRIDE).toBe('/etc/istio/custom-bootstrap/custom_bootstrap.json');
});

test('volumes and mounts from annotations are added with their names (§3.2)', () => {
  const pod = injected(
    appPod({
      ...annotation('userVolume', '{"extra": {"emptyDir": {}}}'),
      ...annotation('userVolumeMount', '{"extra": {"mountPath": "/x"}}'),
    }),
  );
  expect(pod.spec.volumes).toContainEqual({ name: 'extra', emptyDir: {} });
  expect(containerOf(pod).volumeMounts).toContainEqual({ name: 'extra', mountPath: '/x' });
});

test('fields of the pod are unchanged if the sidecar does not need them (§3.2)', () => {
  const fields = ['dnsPolicy', 'dnsConfig', 'hostAliases', 'terminationGracePeriodSeconds'];
  expect(fields.filter((field) => field in injected(appPod()).spec)).toEqual([]);
  const podSpec = { dnsPolicy: 'None', terminationGracePeriodSeconds: 7, containers: [{ name: 'app' }] };
  expect(injected({ spec: podSpec }).spec).toMatchObject({ dnsPolicy: 'None', terminationGracePeriodSeconds: 7 });
});

test("pull secrets from the values are merged by name with the pod's (§3.2)", () => {
  const pod = { spec: { containers: [{ name: 'app' }], imagePullSecrets: [{ name: 'own' }, { name: 'pull' }] } };
  expect(injected(pod, { imagePullSecrets: ['pull'] }).spec.imagePullSecrets).toEqual([
    { name: 'own' },
    { name: 'pull' },
  ]);
});

test('hooks from the values replace those of all proxies, native or not (§3.2)', () => {
  const lifecycle = { preStop: { exec: { command: ['x'] } } };
  for (const nativeSidecars of [true, false])
    expect(containerOf(injected(appPod(), { lifecycle, nativeSidecars })).lifecycle).toEqual(lifecycle);
});

test('the validation is the first init container, and istio-init the last if sidecars are not native (§3.2)', () => {
  const cni = { enabled: true, provider: 'default' };
  const initOf = (values: Partial<InjectionValues>) =>
    injected(
      { spec: { containers: [{ name: 'app' }], initContainers: [{ name: 'migrate' }] } },
      values,
    ).spec.initContainers?.map(({ name }) => name);
  expect(initOf({ cni })).toEqual(['istio-validation', 'istio-proxy', 'migrate']);
  expect(initOf({ cni, nativeSidecars: false })).toEqual(['istio-validation', 'migrate']);
  expect(initOf({ nativeSidecars: false })).toEqual(['migrate', 'istio-init']);
});

test('a proxy that binds privileged ports runs as root with only this capability (§3.2)', () => {
  expect(containerOf(injected(appPod(annotation('capNetBindService', 'true')))).securityContext).toMatchObject({
    ...{ runAsUser: 0, runAsGroup: 1337, capabilities: { add: ['NET_BIND_SERVICE'], drop: ['ALL'] } },
  });
});

test("a gateway has the security context from the values, and reports the mesh's interception mode (§3.3)", () => {
  const pod = {
    metadata: { annotations: { 'inject.istio.io/templates': 'gateway' } },
    spec: { containers: [{ name: 'istio-proxy', image: 'auto' }] },
  };
  const gateways = { securityContext: { runAsNonRoot: true } };
  expect(injected(pod, { gateways }).spec.securityContext).toEqual({ runAsNonRoot: true });
  expect(environmentOf(injected(pod)).ISTIO_META_INTERCEPTION_MODE).toBe('REDIRECT');
  expect(containerOf(injected(pod)).image).toBe('example.com/mesh/proxyv2:1.0');
  expect(injected(pod).spec.volumes).toEqual(injected(appPod()).spec.volumes);
});

test('the template grpc-agent runs the agent without Envoy, and the application finds its bootstrap (§3.3)', () => {
  const pod = injected(appPod({ 'inject.istio.io/templates': 'grpc-agent' }));
  expect(environmentOf(pod)).toMatchObject({ ISTIO_META_GENERATOR: 'grpc' });
  expect(environmentOf(pod, 'app')).toEqual({ GRPC_XDS_BOOTSTRAP: '/etc/istio/proxy/grpc-bootstrap.json' });
  expect(containerOf(pod).readinessProbe).toMatchObject({ httpGet: { port: 15020 } });
});

test('invalid annotations are all listed in one message, and nothing is rendered (§3.4)', () => {
  const settings = {
    ...injectionRequest(appPod()).settings,
    config: { ...defaultInjectionConfig, defaultTemplates: ['unknown'] },
  };
  const invalidAnnotations = { ...annotation('proxyCPU', 'x'), ...annotation('logLevel', 'x') };
  expect(errorsOf(appPod(invalidAnnotations), {}, { settings })).toHaveLength(2);
});

test('annotations from the settings are added unless the pod already has them (§3.4)', () => {
  const settings = {
    ...injectionRequest(appPod()).settings,
    config: { ...defaultInjectionConfig, injectedAnnotations: { a: 'settings', b: 'settings' } },
  };
  expect(injected(appPod({ a: 'pod' }), {}, { settings }).metadata.annotations).toMatchObject({
    a: 'pod',
    b: 'settings',
  });
});

test('variables from the URL replace those of the proxy (§3.4)', () => {
  const addedEnvironment = { ISTIO_META_CLUSTER_ID: 'west', ZONE: 'a' };
  expect(environmentOf(injected(appPod(), {}, { addedEnvironment }))).toMatchObject(addedEnvironment);
});

test('the status annotation lists the revision and the containers that templates added (§3.4)', () => {
  const status = JSON.parse(injected(appPod()).metadata.annotations!['sidecar.istio.io/status']!) as Record<
    string,
    unknown
  >;
  expect(status).toMatchObject({
    initContainers: ['istio-init', 'istio-proxy'],
    containers: null,
    revision: 'default',
  });
});
