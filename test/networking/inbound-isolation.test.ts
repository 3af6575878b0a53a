import { describe, expect, it } from 'vitest';
import type { Proxy } from '../../src/model/node/proxy.ts';
import { shapeOf } from '../../src/model/proxy/proxy-shape.ts';
import { givenProxy } from '../fixtures/given-mesh.ts';
import { attacks, bankAddress, bankProxy, gatewayProxy, tenantsMesh, victims } from './bank-and-mallory.ts';
import { asJson, generate } from './case.ts';

const pod = victims['a pod that its Service selects'];

/** All resources of a proxy as text. */
function sentTo(proxy: Proxy, victim: string, attack: string): string {
  const { context: push } = tenantsMesh(victim, attack);
  const sections = Object.entries(generate({ shape: shapeOf(proxy, push), push }));
  return JSON.stringify(
    sections.map(([name, resources]) => [name, resources.map(asJson)]),
    null,
    1,
  );
}

function targetsOf(proxy: Proxy, victim: string): string[] {
  const { context } = tenantsMesh(victim, '');
  return shapeOf(proxy, context).serviceTargets.map(({ service, targetPort }) => `${service.hostname} ${targetPort}`);
}

describe.each(Object.entries(victims))('the proxy of %s', (_, victim) => {
  it('serves the port in its own namespace as HTTP', () => {
    expect(targetsOf(bankProxy, victim)).toEqual([expect.stringMatching(/^web\.bank\..* 8080$/)]);
    expect(sentTo(bankProxy, victim, '')).toContain('envoy.filters.http.jwt_authn');
  });

  it.each(Object.entries(attacks))('receives the same bytes if another namespace creates %s', (_, attack) => {
    expect(sentTo(bankProxy, victim, attack)).toBe(sentTo(bankProxy, victim, ''));
  });
});

describe('a port that a Sidecar object binds', () => {
  const sidecar = (bind: string): string => `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: { name: web, namespace: bank }
spec:
  ingress:
    - port: { number: 9080, name: http, protocol: HTTP }
      bind: "${bind}"
      captureMode: NONE
      defaultEndpoint: 127.0.0.1:8080
---`;
  const exportedService = (protocol: string, address: string): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: y, namespace: mallory }
spec:
  hosts: [y.mallory.test]
  addresses: ["${address}"]
  resolution: STATIC
  ports: [{ number: 9080, name: y, protocol: ${protocol} }]
  endpoints: [{ address: 10.6.6.6 }]
---`;
  const listenerAt = (name: string, mesh: readonly [string, string]): unknown => {
    const { context: push } = tenantsMesh(...mesh);
    const proxy = { ...bankProxy, ipAddresses: [bankAddress, 'fd00::1'] };
    const { listeners } = generate({ shape: shapeOf(proxy, push), push });
    const port = name.slice(name.lastIndexOf('_'));
    const listenerNames = listeners.filter((one) => one.name.endsWith(port)).map((one) => one.name);
    return [listenerNames, listeners.filter((one) => one.name === name).map(asJson)];
  };

  it.each([
    ['its address', bankAddress, 'TCP', bankAddress],
    ['its IPv6 address in another notation', 'fd00::1', 'TCP', 'fd00:0:0::1'],
    ['the wildcard address', '0.0.0.0', 'HTTP', '10.7.7.7'],
  ])(
    'keeps its listener if another namespace exports a service on the same port at %s',
    (_, bind, protocol, address) => {
      const expected = listenerAt(`${bind}_9080`, [pod + sidecar(bind), '']);
      expect(JSON.stringify(expected)).toContain('envoy.filters.http.jwt_authn');
      expect(listenerAt(`${bind}_9080`, [pod + sidecar(bind), exportedService(protocol, address)])).toEqual(expected);
    },
  );
});

describe('a gateway', () => {
  it('listens on the target ports of the Service in its own namespace', () => {
    const text = sentTo(gatewayProxy, pod, '');
    for (const name of ['0.0.0.0_8080', '0.0.0.0_9000']) expect(text).toContain(`"name": "${name}"`);
  });

  it.each(Object.entries(attacks))('receives the same bytes if another namespace creates %s', (_, attack) => {
    expect(sentTo(gatewayProxy, pod, attack)).toBe(sentTo(gatewayProxy, pod, ''));
  });
});

describe('a node of another namespace', () => {
  const node = { namespace: 'mallory', metadata: { CLUSTER_ID: 'Kubernetes' } };

  it.each([
    ['the address of a pod', { ...givenProxy({ ...node, ip: bankAddress }), name: 'x.mallory' }],
    ['the name of a pod', { ...givenProxy(node), name: 'web-0.bank' }],
    ['name and address of a pod', { ...givenProxy({ ...node, ip: bankAddress }), name: 'web-0.bank' }],
    ['the labels of a pod', givenProxy({ ...node, labels: { app: 'web' } })],
    [
      'the name and address of a pod, without a namespace',
      { ...givenProxy({ ip: bankAddress }), name: 'web-0.bank', configNamespace: '' },
    ],
  ])("receives no port, label or name of the pod's namespace if it claims %s", (_, proxy) => {
    for (const victim of Object.values(victims)) {
      expect(targetsOf(proxy, victim)).toEqual([]);
      expect(tenantsMesh(victim, '').context.workloadOf(proxy)).toBeUndefined();
      expect(sentTo(proxy, victim, '')).not.toMatch(/web\.bank/);
    }
  });
});

describe('an EndpointSlice', () => {
  const client = givenProxy({ namespace: 'mallory', metadata: { ISTIO_VERSION: '1.30.0' } });
  const names = [
    'a Service with a selector and an EndpointSlice of its own',
    'a Service with a selector and an EndpointSlice that names the pod',
  ] as const;

  it.each(names)('does not assign an identity of another namespace to %s', (name) => {
    const { context: push, registry } = tenantsMesh(pod, attacks[name]);
    const endpoints = registry.endpoints.get('x.mallory.svc.cluster.local')?.get('mallory') ?? [];
    expect(endpoints.map(({ address }) => address)).toContain(bankAddress);
    for (const endpoint of endpoints) {
      expect(endpoint).toMatchObject({ namespace: 'mallory', serviceAccount: '', workloadName: '', labels: {} });
    }
    const clusters = generate({ shape: shapeOf(client, push), push }).clusters;
    const cluster = clusters.find(({ name }) => name === 'outbound|8080||x.mallory.svc.cluster.local');
    expect(cluster).toBeDefined();
    expect(JSON.stringify(asJson(cluster!))).not.toContain('/ns/bank/');
  });

  it('assigns the identity of a pod in its own namespace, with or without a reference to the pod', () => {
    for (const ref of [
      '',
      ', targetRef: { kind: Pod, name: web-0, namespace: bank }',
      ', targetRef: { kind: Pod, name: web-0 }',
    ]) {
      const expected = pod.replace(/, targetRef: [^}]*}/, ref);
      const endpoints = tenantsMesh(expected, '').registry.endpoints.get('web.bank.svc.cluster.local')?.get('bank');
      expect(endpoints).toMatchObject([
        { serviceAccount: 'spiffe://cluster.local/ns/bank/sa/sa-web', workloadName: 'web-0' },
      ]);
    }
  });

  it('assigns the identity of its own pod if a pod in another namespace reports the same address', () => {
    const attack = attacks['a pod that reports the address as its own'];
    const expected = pod.replace(/, targetRef: [^}]*}/, '');
    const endpoints = tenantsMesh(expected, attack).registry.endpoints.get('web.bank.svc.cluster.local')?.get('bank');
    expect(endpoints).toMatchObject([{ serviceAccount: 'spiffe://cluster.local/ns/bank/sa/sa-web' }]);
  });
});
