import fc from 'fast-check';
import * as E from 'fp-ts/lib/Either.js';
import { expect, test } from 'vitest';
import { defaultMeshConfig } from '../../model/mesh/mesh-config.ts';
import { proxyConfigFor } from '../../model/push-context/workload-proxy-config.ts';
import type { SidecarInjector } from '../injector.ts';
import type { Json, Texts } from '../pod/pod.ts';
import { defaultInjectionConfig, defaultInjectionValues } from '../settings.ts';
import { type DeployedGateway, type GatewayObjects, gatewayObjects } from './gateway-deployment.ts';
import { defaultNameOf, isServiceName } from './object-names.ts';

const injector: SidecarInjector = {
  settings: {
    config: defaultInjectionConfig,
    values: { ...defaultInjectionValues, hub: 'example.com/mesh', tag: '1.0' },
    revision: 'canary',
  },
  mesh: defaultMeshConfig,
  proxyConfigFor: (workload) => proxyConfigFor([], defaultMeshConfig, workload).proxyConfig,
};

const front: DeployedGateway = {
  ...{ apiVersion: 'gateway.networking.k8s.io/v1', namespace: 'shop', name: 'front', uid: 'u1', className: 'istio' },
  annotations: {},
  listeners: [
    { port: 443, protocol: 'HTTPS' },
    { port: 80, protocol: 'HTTP' },
    { port: 80, protocol: 'HTTP' },
  ],
  infrastructure: { labels: {}, annotations: {} },
};

function objects(gateway: Partial<DeployedGateway> = {}, parameters: Texts = {}): GatewayObjects {
  const built = gatewayObjects({ ...front, ...gateway }, injector, parameters);
  if (E.isLeft(built)) throw new Error(JSON.stringify(built.left));
  return built.right;
}

function errors(gateway: Partial<DeployedGateway>, parameters: Texts = {}): string[] {
  const built = gatewayObjects({ ...front, ...gateway }, injector, parameters);
  return E.isLeft(built) ? built.left.map(({ path, code }) => `${path} ${code}`) : [];
}

const identity = {
  namespace: 'shop',
  name: 'front-istio',
  labels: {
    'gateway.networking.k8s.io/gateway-name': 'front',
    'gateway.networking.k8s.io/gateway-class-name': 'istio',
    'gateway.istio.io/managed': 'istio.io-gateway-controller',
    'istio.io/rev': 'canary',
  },
  ownerReferences: [
    {
      ...{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'Gateway', name: 'front', uid: 'u1' },
      ...{ controller: true, blockOwnerDeletion: false },
    },
  ],
};

test('a Gateway gets a Deployment, a Service with a port for each listener port, and a ServiceAccount', () => {
  const { deployment, service, serviceAccount } = objects();
  expect(serviceAccount).toEqual({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: identity });
  expect(service).toEqual({
    ...{ apiVersion: 'v1', kind: 'Service', metadata: identity },
    spec: {
      type: 'LoadBalancer',
      selector: { 'gateway.networking.k8s.io/gateway-name': 'front' },
      ports: [
        { name: 'status-port', port: 15021, targetPort: 15021, protocol: 'TCP', appProtocol: 'tcp' },
        { name: 'http-80', port: 80, targetPort: 80, protocol: 'TCP', appProtocol: 'http' },
        { name: 'https-443', port: 443, targetPort: 443, protocol: 'TCP', appProtocol: 'https' },
      ],
    },
  });
  expect(deployment).toMatchObject({
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: identity },
    spec: { selector: { matchLabels: { 'gateway.networking.k8s.io/gateway-name': 'front' } } },
  });
  expect(deployment.spec).not.toHaveProperty('replicas');
});

test("a Gateway's pods are built from the injector's gateway template, and webhooks do not inject them again", () => {
  const { template } = objects().deployment.spec as {
    template: { metadata: Json; spec: { containers: readonly Json[]; serviceAccountName: string } };
  };
  expect(template.metadata.labels).toEqual({
    ...identity.labels,
    'service.istio.io/canonical-name': 'front-istio',
    'service.istio.io/canonical-revision': 'latest',
    'sidecar.istio.io/inject': 'false',
  });
  expect(template.metadata).not.toHaveProperty('ownerReferences');
  expect(template.metadata).not.toHaveProperty('generateName');
  expect(template.spec.serviceAccountName).toBe('front-istio');
  expect(template.spec.containers).toHaveLength(1);
  const [proxy] = template.spec.containers;
  expect(proxy).toMatchObject({ name: 'istio-proxy', image: 'example.com/mesh/proxyv2:1.0' });
  expect(proxy!.args).toEqual(expect.arrayContaining(['proxy', 'router']));
  expect(proxy!.env).toEqual(
    expect.arrayContaining([
      { name: 'ISTIO_META_WORKLOAD_NAME', value: 'front-istio' },
      { name: 'ISTIO_META_OWNER', value: 'kubernetes://apis/apps/v1/namespaces/shop/deployments/front-istio' },
    ]),
  );
});

test('annotations define the name, account and Service type, and infrastructure adds labels and annotations', () => {
  const { deployment, service, serviceAccount } = objects({
    annotations: {
      'gateway.istio.io/name-override': 'edge',
      'gateway.istio.io/service-account': 'existing',
      'networking.istio.io/service-type': 'ClusterIP',
    },
    infrastructure: { labels: { team: 'a', 'istio.io/rev': 'other' }, annotations: { 'example.com/lb': 'internal' } },
  });
  expect(serviceAccount).toBeUndefined();
  const metadata = { name: 'edge', labels: { team: 'a', 'istio.io/rev': 'canary' } };
  expect(service).toMatchObject({ metadata, spec: { type: 'ClusterIP' } });
  expect(service.metadata).toMatchObject({ annotations: { 'example.com/lb': 'internal' } });
  expect(deployment).toMatchObject({
    metadata,
    spec: {
      template: {
        metadata: { labels: { team: 'a' }, annotations: { 'example.com/lb': 'internal' } },
        spec: { serviceAccountName: 'existing' },
      },
    },
  });
});

test('parameters are strategic merge patches of the objects', () => {
  const { deployment, service, serviceAccount } = objects(
    {},
    {
      deployment: [
        'spec:',
        '  replicas: 3',
        '  template: {spec: {containers: [{name: istio-proxy, resources: {limits: {cpu: 1}}}]}}',
      ].join('\n'),
      service: 'spec: {loadBalancerClass: example.com/lb, ports: [{port: 80, nodePort: 30080}]}',
      serviceAccount: 'metadata: {annotations: {role: a}}',
    },
  );
  const { template, replicas } = deployment.spec as { replicas: number; template: { spec: { containers: Json[] } } };
  expect(replicas).toBe(3);
  expect(template.spec.containers).toHaveLength(1);
  expect(template.spec.containers[0]).toMatchObject({
    image: 'example.com/mesh/proxyv2:1.0',
    resources: { limits: { cpu: 1 } },
  });
  const { ports, loadBalancerClass } = service.spec as { ports: Json[]; loadBalancerClass: string };
  expect(loadBalancerClass).toBe('example.com/lb');
  expect(ports.find(({ port }) => port === 80)).toMatchObject({ name: 'http-80', nodePort: 30080 });
  expect(ports).toHaveLength(3);
  expect(serviceAccount!.metadata).toMatchObject({ annotations: { role: 'a' }, name: 'front-istio' });
});

test("parameters cannot change an object's namespace, name or owner, or select pods of other workloads", () => {
  const metadata =
    'metadata: {name: kube-dns, namespace: kube-system, ownerReferences: [], uid: u2, finalizers: [a/b], labels: {gateway.istio.io/managed: x}}';
  const hostile = `${metadata}\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\n`;
  const pods =
    'spec: {selector: {matchLabels: {app: other}}, template: {metadata: {labels: {gateway.networking.k8s.io/gateway-name: other}}}}';
  const built = objects({}, { deployment: hostile + pods, service: hostile, serviceAccount: hostile });
  const plain = objects();
  for (const kind of ['deployment', 'service', 'serviceAccount'] as const) {
    const { apiVersion, kind: builtKind, metadata } = built[kind]!;
    expect([apiVersion, builtKind, metadata]).toEqual([plain[kind]!.apiVersion, plain[kind]!.kind, identity]);
  }
  expect(built.deployment.spec).toMatchObject({
    selector: (plain.deployment.spec as Json).selector,
    template: { metadata: { labels: { 'gateway.networking.k8s.io/gateway-name': 'front' } } },
  });
  expect((built.deployment.spec as { selector: Json }).selector).toEqual((plain.deployment.spec as Json).selector);
});

test('parameters that remove all fields preserve the identity of an object', () => {
  const { deployment } = objects({}, { deployment: 'spec: null\nmetadata: null' });
  expect(deployment).toMatchObject({ metadata: identity });
});

test('errors name the annotation of the Gateway or the key in the ConfigMap', () => {
  const longName = 'a'.repeat(64);
  expect(
    errors(
      {
        name: longName,
        annotations: {
          'gateway.istio.io/name-override': 'a.b',
          'gateway.istio.io/service-account': 'A',
          'networking.istio.io/service-type': 'ExternalName',
        },
      },
      { deployment: '[]', service: 'a: [', horizontalPodAutoscaler: '{}' },
    ),
  ).toEqual([
    'metadata.name FIELD_TOO_LARGE',
    'metadata.annotations["gateway.istio.io/name-override"] FIELD_FORMAT_INVALID',
    'metadata.annotations["gateway.istio.io/service-account"] FIELD_FORMAT_INVALID',
    'metadata.annotations["networking.istio.io/service-type"] FIELD_VALUE_UNKNOWN',
    'parametersRef.deployment FIELD_TYPE_INVALID',
    'parametersRef.service FIELD_FORMAT_INVALID',
    'parametersRef.horizontalPodAutoscaler FIELD_VALUE_UNKNOWN',
  ]);
  expect(errors({}, { deployment: 'spec: {template: {spec: {containers: [{image: a}]}}}' })).toEqual([
    'parametersRef.deployment FIELD_FORMAT_INVALID',
  ]);
});

test('a Gateway gets a valid Service name that no other Gateway in its namespace has', () => {
  expect(defaultNameOf('front', 'istio')).toBe('front-istio');
  expect(defaultNameOf('a.b', 'istio')).not.toBe(defaultNameOf('a-b', 'istio'));
  const character = fc.constantFrom('a', 'b', '1', '-', '.');
  const label = fc.string({ unit: character, minLength: 1, maxLength: 80 });
  fc.assert(
    fc.property(label, label, fc.constantFrom('istio', 'c.d', '9'), (a, b, className) => {
      const [one, two] = [defaultNameOf(a, className), defaultNameOf(b, className)];
      expect(isServiceName(one)).toBe(true);
      expect(one === two).toBe(a === b);
    }),
  );
});
