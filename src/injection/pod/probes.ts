/** The kubelet has no mesh certificate, so the agent sends the request of a probe or lifecycle hook to the application from inside the pod. */
import { isObject } from '../../runtime/json-object.ts';
import type { Container, ContainerPort, Json, Pod } from './pod.ts';
import { isSidecarContainer } from './pod.ts';

/** The original probes by path; the value of `ISTIO_KUBE_APP_PROBERS`. */
export type RedirectedProbes = Readonly<Record<string, Json>>;

const probeFields = { readinessProbe: 'readyz', livenessProbe: 'livez', startupProbe: 'startupz' } as const;
const hookFields = { preStop: 'prestopz', postStart: 'poststartz' } as const;
const requestKinds = ['httpGet', 'tcpSocket', 'grpc'] as const;

/** `exec` and `sleep` send no request. */
interface Request {
  readonly kind: (typeof requestKinds)[number];
  readonly fields: Json;
}

export function redirectProbes(pod: Pod, statusPort: number): { readonly pod: Pod; readonly probes: RedirectedProbes } {
  const probes: Record<string, Json> = {};
  const redirectedPod = mapContainers(pod, (container) =>
    mapHandlers(container, (handler, path) => {
      const originalHandler = redirectedHandler(handler, container.ports ?? [], statusPort);
      if (originalHandler === undefined) return handler;
      probes[path] = originalHandler;
      const { httpGet: _http, tcpSocket: _tcp, grpc: _grpc, ...otherFields } = handler;
      return { ...otherFields, httpGet: { path, port: statusPort, scheme: 'HTTP' } };
    }),
  );
  return { pod: redirectedPod, probes };
}

/** Restores the original probes, so that the pod can be injected again. Ports are numbers, even if the original probe used a name. */
export function restoreProbes(pod: Pod, probes: RedirectedProbes): Pod {
  return mapContainers(pod, (container) =>
    mapHandlers(container, (handler, path) => {
      const request = requestOf(handler);
      const originalHandler = Object.hasOwn(probes, path) ? probes[path] : undefined;
      if (originalHandler === undefined || request?.kind !== 'httpGet' || request.fields.path !== path) return handler;
      const { httpGet: _redirected, ...otherFields } = handler;
      const { timeoutSeconds: _timeout, ...restoredHandler } = originalHandler;
      return { ...otherFields, ...restoredHandler };
    }),
  );
}

/** `undefined` if the handler is not redirected. */
function redirectedHandler(handler: Json, ports: readonly ContainerPort[], statusPort: number): Json | undefined {
  const request = requestOf(handler);
  if (request === undefined) return undefined;
  const port = portOf(request.fields.port, ports);
  // An undeclared port name has no number. The kubelet reports it, whereas a redirected probe would always get 404.
  if (port === undefined || port === statusPort) return undefined;
  const { timeoutSeconds } = handler;
  return {
    [request.kind]: { ...request.fields, port },
    ...(typeof timeoutSeconds === 'number' && { timeoutSeconds }),
  };
}

function requestOf(handler: Json): Request | undefined {
  const kind = requestKinds.find((name) => isObject(handler[name]));
  return kind === undefined ? undefined : { kind, fields: handler[kind] as Json };
}

function portOf(port: unknown, ports: readonly ContainerPort[]): number | undefined {
  if (typeof port === 'number') return port;
  if (typeof port !== 'string') return undefined;
  return /^\d+$/.test(port) ? Number(port) : ports.find(({ name }) => name === port)?.containerPort;
}

function mapHandlers(container: Container, map: (handler: Json, path: string) => Json): Container {
  const changedContainer: Record<string, unknown> = { ...container };
  for (const [field, suffix] of Object.entries(probeFields)) {
    const probe = container[field];
    if (isObject(probe)) changedContainer[field] = map(probe, `/app-health/${container.name}/${suffix}`);
  }
  const { lifecycle } = container;
  if (isObject(lifecycle)) {
    const hooks: Record<string, unknown> = { ...lifecycle };
    for (const [field, suffix] of Object.entries(hookFields)) {
      const hook = lifecycle[field];
      if (isObject(hook)) hooks[field] = map(hook, `/app-lifecycle/${container.name}/${suffix}`);
    }
    changedContainer.lifecycle = hooks;
  }
  return changedContainer as Container;
}

function mapContainers(pod: Pod, map: (container: Container) => Container): Pod {
  const { containers, initContainers } = pod.spec;
  const mapContainer = (container: Container): Container =>
    isSidecarContainer(container) ? container : map(container);
  return {
    ...pod,
    spec: {
      ...pod.spec,
      containers: containers.map(mapContainer),
      ...(initContainers && { initContainers: initContainers.map(mapContainer) }),
    },
  };
}
