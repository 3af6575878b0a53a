/** The Helm chart in `deploy/`: rendering, validation by a real API server, and whether its permissions match those used. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { FollowedCluster } from '../../src/discovery/cluster/followed-cluster.ts';
import { statusKinds } from '../../src/discovery/distribution/status-objects.ts';
import { type ApiResource, leases, resourceOf as resourceOfKind } from '../../src/discovery/kubernetes/api-resource.ts';
import type { KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { type KindName, kinds } from '../../src/model/kinds/index.ts';
import { silentLogger } from '../../src/runtime/output/log.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import type { ObjectToWrite, Rule } from './cluster.ts';
import { givenCluster } from './given-cluster.ts';
import { givenHelm, objectsIn } from './given-helm.ts';
import { defineKinds, writeKubeconfig } from './mesh-objects.ts';

const cluster = givenCluster();
const neverAborted = new AbortController().signal;
const secrets: ApiResource = { group: '', version: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true };
const folder = mkdtempSync(join(tmpdir(), 'cp-chart-'));
const { run, render: renderedIn } = givenHelm();

afterEach(stopControlPlanes);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const image = ['--set', 'image.repository=registry.test/chartpilot'];
const allValues = [
  ...[
    '--set',
    'authority.secretName=cacerts,revision=canary,plaintext=true,priorityClassName=high,image.pullSecrets={one}',
  ],
  ...['--set', 'rights.leases=true,rights.identities=true,rights.status=true,service.annotations.a=b,podLabels.a=b'],
  ...[
    '--set',
    'podAnnotations.a=b,serviceAccount.annotations.a=b,nodeSelector.a=b,env.NODE_OPTIONS=--enable-source-maps',
  ],
  ...[
    '--set',
    'extraArgs={--log_as_json},meshConfig.trustDomain=td.test,meshNetworks.networks.one.endpoints[0].fromRegistry=a,tolerations[0].operator=Exists',
  ],
];

const rendered = (...values: string[]): Promise<KubernetesObject[]> => renderedIn(cluster.namespace, ...values);

const plurals: Readonly<Record<string, string>> = { NetworkPolicy: 'networkpolicies' };

function resourceOf({ apiVersion = '', kind = '' }: KubernetesObject): ApiResource {
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  const namespaced = !/^Cluster|^Namespace$|WebhookConfiguration$/.test(kind);
  return { group, version, kind, plural: plurals[kind] ?? `${kind.toLowerCase()}s`, namespaced };
}

/**
 * Applies objects like `kubectl apply --server-side`. Webhooks are only validated: other test files write objects to the same API server, and no
 * replica serves the webhooks.
 */
async function applyAll(objects: readonly KubernetesObject[]): Promise<void> {
  for (const object of objects) {
    const resource = resourceOf(object);
    if (!resource.kind.endsWith('WebhookConfiguration')) {
      await cluster.apply(resource, object as ObjectToWrite);
      continue;
    }
    const query = { fieldManager: 'test', dryRun: 'All', fieldValidation: 'Strict' };
    const { name } = object.metadata;
    await cluster.admin.request({ method: 'PATCH', patch: 'apply', resource, name, body: object, query }, neverAborted);
  }
}

function onlyOfKind(objects: readonly KubernetesObject[], kind: string): KubernetesObject {
  const matchingObjects = objects.filter((object) => object.kind === kind);
  expect(matchingObjects.length).toBe(1);
  return matchingObjects[0]!;
}

const nameOf = (objects: readonly KubernetesObject[]): string => onlyOfKind(objects, 'ServiceAccount').metadata.name;

/** Starts the program with the permissions of the chart and the shared root. */
async function startPlane(...values: string[]): Promise<ControlPlane> {
  const objects = await rendered(...image, ...values);
  await applyAll(objects);
  const kubeconfig = join(folder, crypto.randomUUID());
  writeKubeconfig(kubeconfig, cluster, await cluster.token(nameOf(objects)));
  const { namespace } = cluster;
  const addresses = { secureGRPCAddr: '127.0.0.1:0', httpsAddr: '127.0.0.1:0' };
  const flags = { registries: 'Kubernetes', configDir: '', kubeconfig, namespace, ...addresses };
  return new ControlPlane(flags, {}, () => {}, { SELF_SIGNED_CA_SECRET: 'istio-ca-secret' });
}

describe("Helm with the control plane's chart", () => {
  it('reports no lint findings', async () => {
    expect(await run('lint', '--strict', 'deploy/chart', ...image)).toContain('0 chart(s) failed');
  });

  it.each([
    [[], 'image.repository must name an image'],
    [[...image, '--set', 'replica=3'], 'replica'],
    [[...image, '--set', 'rights.everything=true'], 'everything'],
    [[...image, '--set-string', 'replicas=two'], 'replicas'],
  ])('rejects the flags %j with an error that names the value to correct', async (values, reasonText) => {
    await expect(rendered(...values)).rejects.toThrow(reasonText);
  });
});

describe('values with another meaning in YAML', () => {
  it.each(['20', 'true', 'null', '1e3'])('stay strings in settings: %s', async (settingText) => {
    const names = ['revision', 'priorityClassName', 'authority.secretName', 'image.pullSecrets[0]'];
    const settings = names.flatMap((name) => ['--set-string', `${name}=${settingText}`]);
    const objects = await rendered(...image, ...settings, '--set-string', 'env.true=b');
    await applyAll(objects);
    for (const { metadata } of objects) expect(metadata.labels).toMatchObject({ 'istio.io/rev': settingText });
    const { template } = onlyOfKind(objects, 'Deployment').spec as { template: { spec: unknown } };
    expect(template.spec).toMatchObject({
      priorityClassName: settingText,
      imagePullSecrets: [{ name: settingText }],
      containers: [{ env: expect.arrayContaining([{ name: 'true', value: 'b' }]) }],
      volumes: expect.arrayContaining([
        expect.objectContaining({ secret: expect.objectContaining({ secretName: settingText }) }),
      ]),
    });
  });

  it('stay strings in names of releases and namespaces', async () => {
    const text = await run(
      'template',
      '20',
      'deploy/chart',
      '--namespace',
      '30',
      ...image,
      '--set',
      'createNamespace=true',
    );
    const objects = objectsIn(text);
    for (const object of objects.filter(({ kind }) => kind !== 'Namespace')) {
      expect(object.metadata.labels).toMatchObject({ 'app.kubernetes.io/instance': '20' });
      if (resourceOf(object).namespaced) expect(object.metadata.namespace).toBe('30');
    }
    expect(onlyOfKind(objects, 'Namespace').metadata.name).toBe('30');
  });

  it('stay strings in flags with a comment or a colon', async () => {
    const objects = await rendered(...image, '--set-string', 'clusterID=a #b', '--set-string', 'domain=c: d');
    const { template } = onlyOfKind(objects, 'Deployment').spec as {
      template: { spec: { containers: readonly [{ args: readonly string[] }] } };
    };
    expect(template.spec.containers[0].args).toEqual(expect.arrayContaining(['--clusterID=a #b', '--domain=c: d']));
  });
});

describe.each([
  ['with default values', []],
  ['with all features enabled', allValues],
])('the chart %s', (_, values) => {
  it('is accepted by the API server, as are its pods in a namespace with the restricted Pod Security Standard', async () => {
    const objects = await rendered(...image, ...values);
    expect(new Set(objects.map(({ kind }) => kind))).toEqual(
      new Set([
        ...[
          'ServiceAccount',
          'ClusterRole',
          'ClusterRoleBinding',
          'ConfigMap',
          'Deployment',
          'PodDisruptionBudget',
          'Service',
        ],
        ...['Role', 'RoleBinding', 'MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'],
      ]),
    );
    await applyAll(objects);
    const strict = `${cluster.namespace}-strict`;
    const namespaces: ApiResource = {
      group: '',
      version: 'v1',
      kind: 'Namespace',
      plural: 'namespaces',
      namespaced: false,
    };
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await cluster.apply(namespaces, { metadata: { name: strict, labels } });
    const { metadata, spec } = (onlyOfKind(objects, 'Deployment').spec as { template: KubernetesObject }).template;
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name: 'istiod', namespace: strict }, spec };
    // The priority class does not exist.
    const unranked = { ...pod, spec: { ...(spec as object), priorityClassName: undefined } };
    await cluster.admin.request(
      { method: 'POST', resource: resourceOf(pod), namespace: strict, body: unranked, query: { dryRun: 'All' } },
      neverAborted,
    );
    const root = { ...unranked, spec: { ...unranked.spec, securityContext: { runAsUser: 0 } } };
    await expect(
      cluster.admin.request({ method: 'POST', resource: resourceOf(pod), namespace: strict, body: root }, neverAborted),
    ).rejects.toThrow('PodSecurity');
  });

  it('selects its own pods and uses ports that these pods have', async () => {
    const objects = await rendered(...image, ...values);
    const { selector, template } = onlyOfKind(objects, 'Deployment').spec as {
      selector: { matchLabels: object };
      template: {
        metadata: { labels: object };
        spec: { containers: readonly [{ ports: readonly { name: string; containerPort: number }[] }] };
      };
    };
    expect(template.metadata.labels).toMatchObject(selector.matchLabels);
    const service = onlyOfKind(objects, 'Service').spec as {
      selector: object;
      ports: readonly { targetPort: string | number; port: number }[];
    };
    expect(service.selector).toEqual(selector.matchLabels);
    expect((onlyOfKind(objects, 'PodDisruptionBudget').spec as { selector: object }).selector).toEqual(selector);
    const ports = template.spec.containers[0].ports.flatMap(({ name, containerPort }) => [name, containerPort]);
    expect(ports).toEqual(expect.arrayContaining(service.ports.map(({ targetPort }) => targetPort)));
    const numbers = [template.spec.containers[0].ports, service.ports].map((of) =>
      of.map((one) => ('port' in one ? one.port : one.containerPort)),
    );
    for (const all of numbers) expect(new Set(all).size).toBe(all.length);
  });
});

describe('the permissions of the chart', () => {
  it('are sufficient to become ready', async () => {
    const dns = 'meshConfig.certificates[0].secretName=dns.web,meshConfig.certificates[0].dnsNames={web.test}';
    const plane = await startPlane('--set', `meshConfig.trustDomain=chart.test,${dns}`);
    await plane.ready();
    expect((await plane.get('/debug/mesh')).text).toContain('chart.test');
    const target = { resource: secrets, namespace: cluster.namespace };
    const change = (name: string, body: object) =>
      cluster.admin.request({ method: 'PATCH', ...target, name, body }, neverAborted);
    const versionOf = async (name: string): Promise<string | undefined> =>
      (await cluster.admin.request({ method: 'GET', ...target, name }, neverAborted)).metadata.resourceVersion;
    await eventually('the certificate is there', async () => (await versionOf('dns.web')) !== undefined);
    const brokenVersion = (await change('dns.web', { data: null })).metadata.resourceVersion;
    await eventually('it is there again', async () => (await versionOf('dns.web')) !== brokenVersion);
    expect(plane.unexpectedErrors()).toEqual([]);
    await change('istio-ca-secret', { metadata: { annotations: { 'chartpilot/order': 'rotate' } } });
    await eventually('a rotation has begun', async () =>
      /"trusting"/.test((await plane.get('/debug/authorityz')).text),
    );
  });

  it('are limited to watched kinds, token and access reviews, WorkloadEntries for auto-registration, and objects that a replica writes', async () => {
    const { rules: all } = onlyOfKind(await rendered(...image), 'ClusterRole') as unknown as { rules: readonly Rule[] };
    const isQuestion = ({ verbs }: Rule): boolean => !verbs.includes('list');
    const isIstioStatusRule = ({ apiGroups, resources, verbs }: Rule): boolean =>
      verbs.includes('update') &&
      apiGroups[0]!.endsWith('.istio.io') &&
      resources.every((resource) => resource.endsWith('/status'));
    expect(all.filter(isQuestion)).toEqual([
      { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
      { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
      {
        apiGroups: ['networking.istio.io'],
        resources: ['workloadentries'],
        verbs: ['get', 'create', 'patch', 'delete'],
      },
      { apiGroups: ['networking.istio.io'], resources: ['workloadentries/status'], verbs: ['patch'] },
      { apiGroups: [''], resources: ['configmaps'], verbs: ['create'] },
      { apiGroups: [''], resources: ['configmaps'], resourceNames: ['istio-ca-root-cert'], verbs: ['patch'] },
      {
        apiGroups: ['admissionregistration.k8s.io'],
        resources: ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'],
        verbs: ['patch'],
      },
      { apiGroups: [''], resources: ['events'], verbs: ['create'] },
      { apiGroups: ['networking.k8s.io'], resources: ['ingresses/status'], verbs: ['get', 'update'] },
      {
        apiGroups: ['gateway.networking.k8s.io'],
        resources: [
          'backendtlspolicies',
          'gatewayclasses',
          'gateways',
          'grpcroutes',
          'httproutes',
          'tcproutes',
          'tlsroutes',
        ].map((plural) => `${plural}/status`),
        verbs: ['get', 'update'],
      },
      { apiGroups: ['gateway.networking.k8s.io'], resources: ['gatewayclasses'], verbs: ['create'] },
      ...all.filter(isIstioStatusRule),
      { apiGroups: [''], resources: ['services', 'serviceaccounts'], verbs: ['get', 'create', 'patch'] },
      { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get', 'create', 'patch'] },
      { apiGroups: [''], resources: ['events'], verbs: ['create'] },
      { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] },
    ]);
    // Istio's kinds whose status the control plane writes.
    const statusRules = all.filter(isIstioStatusRule);
    expect(statusRules.every(({ verbs }) => verbs.join() === 'get,update')).toBe(true);
    const names = statusRules.flatMap(({ apiGroups: [group], resources }) =>
      resources.map((resource) => `${resource.split('/')[0]}.${group}`),
    );
    expect(names.sort()).toEqual(statusKinds.map((kind) => `${kinds[kind].plural}.${kinds[kind].group}`).sort());
    const rules = all.filter((rule) => !isQuestion(rule));
    const granted = rules.flatMap(({ apiGroups, resources }) =>
      apiGroups.flatMap((group) => resources.map((resource) => `${resource}.${group}`)),
    );
    const follows = new FollowedCluster({
      access: cluster.access(),
      isRegistry: true,
      settings: { namespace: cluster.namespace, revision: '', sharedName: '' },
      ...{ signsCertificates: true, injectsSidecars: true },
      log: silentLogger,
    });
    const followedResources = follows.input.resources.map((name) => {
      const nameParts = name.split('/');
      // A permission such as `v1/secrets` or `networking.istio.io/v1/gateways`; for a single object also with namespace and name.
      return nameParts[0] === 'v1' ? `${nameParts[1]}.` : `${nameParts[2]}.${nameParts[0]}`;
    });
    follows.close();
    expect(granted.sort()).toEqual([...new Set(followedResources)].sort());
    expect(new Set(rules.flatMap(({ verbs }) => verbs))).toEqual(new Set(['list', 'watch']));
  });

  it('only allow creating and changing a Secret in the release namespace for the shared root', async () => {
    const roleIn = (objects: readonly KubernetesObject[]) =>
      objects.find(({ kind, metadata: { name } }) => kind === 'Role' && name.endsWith('-authority'));
    const role = roleIn(await rendered(...image));
    expect(role?.metadata.namespace).toBe(cluster.namespace);
    expect(role?.rules).toEqual([
      { apiGroups: [''], resources: ['secrets'], verbs: ['create'] },
      { apiGroups: [''], resources: ['secrets'], resourceNames: ['istio-ca-secret'], verbs: ['patch'] },
    ]);
    const dns = 'meshConfig.certificates[0].secretName=dns.web,authority.secretName=cacerts';
    expect(roleIn(await rendered(...image, '--set', dns))?.rules).toMatchObject([
      { verbs: ['create'] },
      { resourceNames: ['dns.web'], verbs: ['patch'] },
    ]);
    for (const value of ['authority.secretName=cacerts', 'authority.selfSigned=false']) {
      expect(roleIn(await rendered(...image, '--set', value))).toBeUndefined();
    }
  });

  it('are all needed for Leases and for a ConfigMap in each namespace', async () => {
    const objects = await rendered(...image);
    const role = objects.find(({ kind, metadata: { name } }) => kind === 'Role' && !name.endsWith('-authority'));
    expect(role?.rules).toEqual([
      { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] },
      { apiGroups: ['networking.istio.io'], resources: ['gateways'], verbs: ['create'] },
      { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['list', 'delete'] },
    ]);
    const of = resourceOf({ kind: 'ConfigMap', apiVersion: 'v1' } as KubernetesObject);
    const target = { resource: of, namespace: cluster.namespace, name: 'istio-ca-root-cert' } as const;
    const readRoot = async (): Promise<string> => {
      const { data } = await cluster.admin.request({ method: 'GET', ...target }, neverAborted);
      return (data as Record<string, string>)['root-cert.pem']!;
    };
    const plane = await startPlane();
    await eventually('the root is there', async () => (await readRoot()).includes('BEGIN CERTIFICATE'));
    await cluster.apply(of, { metadata: { name: target.name }, data: { 'root-cert.pem': 'another' } });
    await eventually('it is there again', async () => (await readRoot()).includes('BEGIN CERTIFICATE'));
    await plane.stop();
    const { items } = await cluster.admin.list(leases, { namespace: cluster.namespace }, neverAborted);
    const holders = items.map(({ spec }) => (spec as { holderIdentity?: string }).holderIdentity ?? '');
    expect(new Set(holders)).toEqual(new Set(['']));
    expect(plane.lines.filter((line) => line.includes('forbidden'))).toEqual([]);
  });

  it('are limited to the name of the ConfigMap with the root', async () => {
    const namedRules = async (...values: string[]): Promise<unknown> => {
      const { rules } = onlyOfKind(await rendered(...image, ...values), 'ClusterRole') as unknown as {
        rules: readonly Rule[];
      };
      return rules.flatMap(({ resources, verbs, resourceNames = [] }) =>
        resources.includes('configmaps') && verbs.includes('patch') ? resourceNames : [],
      );
    };
    expect(await namedRules()).toEqual(['istio-ca-root-cert']);
    expect(await namedRules('--set', 'env.PILOT_CA_CERT_CONFIGMAP=mesh-root')).toEqual(['mesh-root']);
  });

  it('exist for CertificateSigningRequests only if a signer is configured, and allow approval only for this signer', async () => {
    const group = { apiGroups: ['certificates.k8s.io'] };
    const requestRule = { ...group, resources: ['certificatesigningrequests'], verbs: ['create', 'get', 'delete'] };
    const rulesWith = async (...values: string[]): Promise<readonly Rule[]> => {
      const all = [
        '--set',
        `authority.kubernetesSigner=example.com/mesh${values.map((value) => `,${value}`).join('')}`,
      ];
      const { rules } = onlyOfKind(await rendered(...image, ...all), 'ClusterRole') as unknown as {
        rules: readonly Rule[];
      };
      return rules.filter(({ apiGroups }) => apiGroups.includes('certificates.k8s.io'));
    };
    expect(await rulesWith('authority.approveRequests=false')).toEqual([requestRule]);
    expect(await rulesWith()).toEqual([
      requestRule,
      { ...group, resources: ['certificatesigningrequests/approval'], verbs: ['update'] },
      { ...group, resources: ['signers'], resourceNames: ['example.com/mesh'], verbs: ['approve'] },
    ]);
  });

  it('are sufficient to manage the Deployment, Service and ServiceAccount of a deployed Gateway', async () => {
    await defineKinds(cluster, ['GatewayClass', 'KubernetesGateway']);
    const gatewayClass = `run-${cluster.namespace}`;
    await cluster.apply(resourceOfKind('GatewayClass'), {
      metadata: { name: gatewayClass },
      spec: { controllerName: 'istio.io/gateway-controller' },
    });
    const parametersRef = { group: '', kind: 'ConfigMap', name: 'parameters' };
    await cluster.apply(resourceOfKind('ConfigMap'), {
      metadata: { name: 'parameters' },
      data: { deployment: 'spec: { replicas: 3 }' },
    });
    const listeners = [{ name: 'a', port: 80, protocol: 'HTTP' }];
    await cluster.apply(resourceOfKind('KubernetesGateway'), {
      metadata: { name: 'run' },
      spec: { gatewayClassName: gatewayClass, listeners, infrastructure: { parametersRef } },
    });
    const plane = await startPlane();
    const name = `run-${gatewayClass}`;
    const read = (kind: string, apiVersion = 'v1'): Promise<KubernetesObject> => {
      const resource = resourceOf({ kind, apiVersion } as KubernetesObject);
      return cluster.admin.request({ method: 'GET', resource, namespace: cluster.namespace, name }, neverAborted);
    };
    await eventually('the Deployment has the parameters', async () => {
      const { spec } = await read('Deployment', 'apps/v1');
      return (spec as { replicas?: number }).replicas === 3;
    });
    await Promise.all([read('Service'), read('ServiceAccount')]);
    expect(plane.lines.filter((line) => line.includes('forbidden'))).toEqual([]);
    await plane.stop();
  });

  it('are all needed for statuses', async () => {
    await defineKinds(cluster, ['GatewayClass', 'KubernetesGateway', 'HTTPRoute', 'ServiceEntry']);
    const [gatewayClass, name] = [`chart-${cluster.namespace}`, 'front'];
    const toCart = { service: { name: 'cart', port: { number: 80 } } };
    const objects: [KindName, string, object][] = [
      ['GatewayClass', gatewayClass, { controllerName: 'istio.io/gateway-controller' }],
      [
        'KubernetesGateway',
        name,
        { gatewayClassName: gatewayClass, listeners: [{ name: 'a', port: 80, protocol: 'HTTP' }] },
      ],
      ['HTTPRoute', name, { parentRefs: [{ name }], rules: [{ backendRefs: [{ name: 'cart', port: 80 }] }] }],
      ['Ingress', name, { defaultBackend: toCart }],
      [
        'ServiceEntry',
        name,
        { hosts: ['a.example.com'], resolution: 'DNS', ports: [{ number: 80, name: 'http', protocol: 'HTTP' }] },
      ],
      ['Service', 'istio-ingressgateway', { ports: [{ port: 80 }], externalIPs: ['192.0.2.7'] }],
    ];
    const annotations = { 'kubernetes.io/ingress.class': 'istio' };
    for (const [kind, called, spec] of objects)
      await cluster.apply(resourceOfKind(kind), { metadata: { name: called, annotations }, spec });
    const plane = await startPlane();
    for (const [kind, called] of objects.slice(0, -1)) {
      await eventually(`there is a status of ${kind}`, async () => {
        const target = { resource: resourceOfKind(kind), name: called, namespace: cluster.namespace };
        const { status } = await cluster.admin.request({ method: 'GET', ...target }, neverAborted);
        return /"observedGeneration":1|192\.0\.2\.7|240\.240\./.test(JSON.stringify(status ?? null));
      });
    }
    await eventually('the class that Gateways name has been created', async () => {
      const target = { resource: resourceOfKind('GatewayClass'), name: 'istio' };
      const { spec } = await cluster.admin.request({ method: 'GET', ...target }, neverAborted);
      return (spec as { controllerName?: string }).controllerName === 'istio.io/gateway-controller';
    });
    await plane.stop();
    expect(plane.lines.filter((line) => line.includes('forbidden'))).toEqual([]);
  });

  it('are listed by /ready if they are missing', async () => {
    const plane = await startPlane('--set', 'rights.secrets=false,revision=poor');
    // Excludes Secrets that configure remote clusters, the two Secrets of the authority, and those of DNS certificates.
    const expectedReason =
      /Kubernetes: waiting for (?:v1\/secrets\S* \(secrets(?: \S+)? is forbidden: [^,]*, ){4}1 other kinds\)$/;
    await eventually('it waits for Secrets alone, and says why', async () => {
      const { status, text } = await plane.get('/ready');
      return status === 503 && expectedReason.test(text.trim());
    });
  });
});
