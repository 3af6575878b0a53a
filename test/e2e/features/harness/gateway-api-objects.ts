/** Gateway API objects, and the Services behind them. */
import { stringify } from 'yaml';
import { type HttpBackend, TcpBackend } from './backends.ts';
import { joinDocuments } from './gateway-objects.ts';
import { object } from './objects.ts';

const apiVersion = 'gateway.networking.k8s.io/v1';

/** A listener; other fields are set by the test. */
export type WrittenListener = Readonly<Record<string, unknown>> & { readonly port: number };

export function kubernetesGateway(listeners: readonly WrittenListener[], extraSpec: object = {}): string {
  const namedListeners = listeners.map((one, index) => ({ name: `l${index}`, protocol: 'HTTP', ...one }));
  return object(apiVersion, 'Gateway', 'shop', 'front', {
    gatewayClassName: 'istio',
    listeners: namedListeners,
    ...extraSpec,
  });
}

export interface RouteOptions {
  readonly name?: string;
  readonly namespace?: string;
  readonly hostnames?: readonly string[];
  readonly parentRefs?: readonly object[];
}

export const httpRoute = (rules: readonly object[], options?: RouteOptions): string =>
  route('HTTPRoute', rules, options);
export const grpcRoute = (rules: readonly object[], options?: RouteOptions): string =>
  route('GRPCRoute', rules, options);

export const tcpRoute = (rules: readonly object[], options?: RouteOptions): string => route('TCPRoute', rules, options);
export const tlsRoute = (rules: readonly object[], options?: RouteOptions): string => route('TLSRoute', rules, options);

function route(kind: string, rules: readonly object[], options: RouteOptions = {}): string {
  const {
    name = 'route',
    namespace = 'shop',
    hostnames,
    parentRefs = [{ name: 'front', namespace: 'shop' }],
  } = options;
  return object(apiVersion, kind, namespace, name, { parentRefs, ...(hostnames && { hostnames }), rules });
}

export const servicePort = 80;

/** A Service with an EndpointSlice for an application. */
export function serviceOf(
  backend: HttpBackend | TcpBackend,
  { namespace = 'shop', name = backend.name, port = servicePort } = {},
) {
  const portName = backend instanceof TcpBackend ? 'tcp' : 'http';
  const ports = [{ name: portName, port, targetPort: backend.port }];
  const labels = { 'kubernetes.io/service-name': name };
  return joinDocuments(
    stringify({ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace }, spec: { ports } }),
    stringify({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: `${name}-1`, namespace, labels },
      addressType: 'IPv4',
      ports: [{ name: portName, port: backend.port }],
      endpoints: [{ addresses: [backend.address] }],
    }),
  );
}

/** A backend reference to a Service of the route's namespace. */
export const to = (name: string, extraFields: object = {}): object => ({ name, port: servicePort, ...extraFields });
