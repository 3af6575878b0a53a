/**
 * Two tenants: `bank` serves HTTP behind a JWT check. `mallory` has all permissions in its own namespace, but none elsewhere, and creates objects
 * with the addresses of bank's workloads.
 */
import { type GivenMesh, givenMesh, givenProxy } from '../fixtures/given-mesh.ts';

export const bankAddress = '10.0.0.1';
export const gatewayAddress = '10.0.0.2';

const jwks = JSON.stringify({
  keys: [
    {
      ...{ kty: 'EC', crv: 'P-256', kid: 'one', alg: 'ES256' },
      x: 'WvdbDq3OdHLFuULHLy0P7XNOZmSE9I8Yar6cn9B86WA',
      y: '2gfd-QBU93JLXDDc9HovTB-EW8g4K_9tNuq9_h-nTqw',
    },
  ],
});

/** Rejects requests with an invalid token. */
export const tokenCheck = `
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: { name: jwt, namespace: bank }
spec: { jwtRules: [{ issuer: https://one.test, jwks: '${jwks}' }] }
---`;

const policies = `${tokenCheck}
apiVersion: extensions.istio.io/v1alpha1
kind: WasmPlugin
metadata: { name: filter, namespace: bank }
spec: { url: https://example.com/filter.wasm, failStrategy: FAIL_OPEN }
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: web, namespace: bank }
spec: { host: web.bank.svc.cluster.local, trafficPolicy: { connectionPool: { tcp: { maxConnections: 1000 } } } }
---`;

const gateway = `
apiVersion: v1
kind: Service
metadata: { name: gate, namespace: bank }
spec: { clusterIP: 10.9.0.2, selector: { app: gate }, ports: [{ name: http, port: 80, targetPort: 8080 }] }
---
apiVersion: v1
kind: Pod
metadata: { name: gate-0, namespace: bank, labels: { app: gate } }
spec: { containers: [] }
status: { phase: Running, podIP: ${gatewayAddress} }
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: gate, namespace: bank }
spec:
  selector: { app: gate }
  servers:
    - { port: { number: 80, name: http, protocol: HTTP }, hosts: [gate.test] }
    - { port: { number: 9000, name: other, protocol: HTTP }, hosts: [gate.test] }
---`;

const podService = `
apiVersion: v1
kind: Service
metadata: { name: web, namespace: bank, annotations: { networking.istio.io/exportTo: "." } }
spec: { clusterIP: 10.9.0.1, selector: { app: web }, ports: [{ name: http, port: 80, targetPort: 8080 }] }
---`;

const pod = `
apiVersion: v1
kind: Pod
metadata: { name: web-0, namespace: bank, labels: { app: web } }
spec: { serviceAccountName: sa-web, containers: [{ ports: [{ name: web, containerPort: 8080 }] }] }
status: { phase: Running, podIP: ${bankAddress} }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, namespace: bank, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints: [{ addresses: [${bankAddress}], targetRef: { kind: Pod, name: web-0, namespace: bank } }]
---`;

const virtualMachine = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web, namespace: bank }
spec:
  hosts: [web.bank.test]
  exportTo: ["."]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP, targetPort: 8080 }]
  workloadSelector: { labels: { app: web } }
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: { name: web-0, namespace: bank }
spec: { address: ${bankAddress}, labels: { app: web }, serviceAccount: sa-web }
---`;

/** Registrations of bank's workload. Its proxy serves HTTP on port 8080 in all of them. */
export const victims = {
  'a pod that its Service selects': podService + pod,
  'a pod that is not known yet, by the labels of its proxy': podService,
  'a virtual machine': virtualMachine,
} as const;

/** Objects that mallory creates. None is exported, so they must not affect bank. */
export const attacks = {
  'a ServiceEntry with the address as endpoint': serviceEntry(
    `endpoints: [{ address: ${bankAddress} }, { address: ${gatewayAddress} }]`,
  ),
  'a ServiceEntry that selects a WorkloadEntry at the address':
    serviceEntry('workloadSelector: { labels: { app: web } }') + workloadEntries(),
  'a Service that selects a WorkloadEntry at the address': service('selector: { app: web }, ') + workloadEntries(),
  'a Service without a selector and its EndpointSlice': service('') + slice(''),
  'a Service without a selector and its Endpoints': `${service('')}
apiVersion: v1
kind: Endpoints
metadata: { name: x, namespace: mallory }
subsets: [{ addresses: [{ ip: ${bankAddress} }, { ip: ${gatewayAddress} }], ports: [{ name: tcp, port: 8080 }] }]
---`,
  'a headless Service without a selector and its EndpointSlice': service('').replace('10.9.9.9', 'None') + slice(''),
  'a Service with a selector and an EndpointSlice of its own': service('selector: { app: web }, ') + slice(''),
  'a Service with a selector and an EndpointSlice that names the pod':
    service('selector: { app: web }, ') + slice(', targetRef: { kind: Pod, name: web-0, namespace: bank }'),
  'a pod that reports the address as its own': `${service('selector: { app: web }, ')}${['web-0', 'gate-0']
    .map(
      (name) => `
apiVersion: v1
kind: Pod
metadata: { name: ${name}, namespace: mallory, labels: { app: web, istio-locality: mallory.mallory } }
spec: { hostNetwork: true, containers: [{ ports: [{ name: tcp, containerPort: 8080 }] }] }
status: { phase: Running, podIP: ${name === 'web-0' ? bankAddress : gatewayAddress} }
---`,
    )
    .join('')}`,
  'DestinationRules for the hosts': `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: web, namespace: mallory }
spec: { host: "*.svc.cluster.local", trafficPolicy: { connectionPool: { tcp: { maxConnections: 1 } } } }
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: vm, namespace: mallory }
spec: { host: web.bank.test, exportTo: [bank], trafficPolicy: { connectionPool: { tcp: { maxConnections: 1 } } } }
---`,
} as const;

function serviceEntry(endpoints: string): string {
  return `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: x, namespace: mallory }
spec:
  hosts: [x.mallory.test]
  exportTo: ["."]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 8080, name: tcp, protocol: TCP }, { number: 80, name: moved, protocol: TCP, targetPort: 9999 }, { number: 9000, name: gone, protocol: TCP, targetPort: 80 }]
  ${endpoints}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: x, namespace: mallory }
spec: { host: x.mallory.test, trafficPolicy: { connectionPool: { tcp: { maxConnections: 1 } } } }
---`;
}

function workloadEntries(): string {
  return [bankAddress, gatewayAddress]
    .map(
      (address, index) => `
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: { name: w${index}, namespace: mallory }
spec: { address: ${address}, labels: { app: web }, serviceAccount: sa-web }
---`,
    )
    .join('');
}

function service(selector: string): string {
  return `
apiVersion: v1
kind: Service
metadata: { name: x, namespace: mallory, annotations: { networking.istio.io/exportTo: "." } }
spec: { clusterIP: 10.9.9.9, ${selector}ports: [{ name: tcp, port: 8080 }, { name: moved, port: 80, targetPort: 9999 }, { name: gone, port: 9000, targetPort: 80 }] }
---`;
}

function slice(extraFields: string): string {
  return `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: x-1, namespace: mallory, labels: { kubernetes.io/service-name: x } }
addressType: IPv4
ports: [{ name: tcp, port: 8080 }, { name: moved, port: 9999 }, { name: gone, port: 80 }]
endpoints: [{ addresses: [${bankAddress}]${extraFields} }, { addresses: [${gatewayAddress}] }]
---`;
}

/** Bank's objects, followed by mallory's. */
export function tenantsMesh(victim: string, attack: string): GivenMesh {
  return givenMesh(policies + gateway + victim + attack);
}

const withAgent = { ISTIO_VERSION: '1.30.0', CLUSTER_ID: 'Kubernetes' };

/** The proxy of bank's workload `web-0`. */
export const bankProxy = givenProxy({
  ip: bankAddress,
  namespace: 'bank',
  labels: { app: 'web' },
  metadata: withAgent,
});

/** Bank's gateway `gate-0`. */
export const gatewayProxy = {
  ...givenProxy({
    type: 'router',
    ip: gatewayAddress,
    namespace: 'bank',
    labels: { app: 'gate' },
    metadata: withAgent,
  }),
  name: 'gate-0.bank',
};
