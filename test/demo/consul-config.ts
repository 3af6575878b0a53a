/** Configuration of the Consul demo: listeners of each proxy, and the weights of the versions of `stock`. */

/** An instance of a service: its Envoy listens at `address:port`, its application on loopback. */
export interface VirtualMachine {
  readonly name: string;
  readonly version: string;
  readonly address: string;
  readonly port: number;
  readonly applicationPort: number;
}

export const stockHost = 'stock.service.consul';

/** @returns YAML of a Sidecar for each machine, and of the VirtualService and DestinationRule of `stock` */
export function consulMeshConfig(machines: readonly VirtualMachine[], weights: { v1: number; v2: number }): string {
  const stockPort = machines.find(({ name }) => name === 'stock')!.port;
  const destination = (subset: 'v1' | 'v2'): string => `
        - destination: { host: ${stockHost}, subset: ${subset} }
          weight: ${weights[subset]}`;
  const route = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: stock, namespace: default }
spec:
  hosts: [${stockHost}]
  http:
    - route:${destination('v1')}${destination('v2')}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: stock, namespace: default }
spec:
  host: ${stockHost}
  subsets:
    - { name: v1, labels: { version: v1 } }
    - { name: v2, labels: { version: v2 } }
`;
  return [route, ...machines.map((machine) => sidecarOf(machine, stockPort))].join('---\n');
}

/** No connections are intercepted: the proxy listens at its machine's address. Only `shop` calls another service. */
function sidecarOf({ name, version, address, port, applicationPort }: VirtualMachine, stockPort: number): string {
  const egress =
    name === 'shop'
      ? `
    - port: { number: ${stockPort}, name: http, protocol: HTTP }
      bind: ${address}
      captureMode: NONE
      hosts: [default/${stockHost}]`
      : `
    - hosts: [~/*]`;
  return `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: { name: ${name}-${version}, namespace: default }
spec:
  workloadSelector:
    labels: { app: ${name}, version: ${version} }
  ingress:
    - port: { number: ${port}, name: http, protocol: HTTP }
      bind: ${address}
      captureMode: NONE
      defaultEndpoint: 127.0.0.1:${applicationPort}
  egress:${egress}
`;
}
