/**
 * What many proxies cost, computed from what was measured of one replica (`measured.json`): the tables of docs/scaling.md. Pure.
 * It says nothing that was not measured but by adding and multiplying; what does not grow so is named in the document.
 */
import measured from './measured.json' with { type: 'json' };

export type Measured = typeof measured;

export interface ScaledMesh {
  readonly proxies: number;
  readonly services: number;
  readonly namespaces: number;
  /** That a proxy sees. */
  readonly seen: number;
  /** A second, in the whole mesh; each is of one service. */
  readonly endpointChanges: number;
  readonly routeChanges: number;
  /** Proxies connect with TLS. */
  readonly hasTls: boolean;
}

/** Of one replica unless said. */
export interface ReplicaCost {
  readonly connections: number;
  readonly residentMib: number;
  /** Of a core. */
  readonly changesCpu: number;
  readonly changesMbitPerSecond: number;
  /** One route change of a service, to those who see it. */
  readonly routeChangeMb: number;
  /**
   * All connections open again, at another replica or this one, and nothing has changed: CPU, bytes in delta, and how long the
   * limit of new streams takes.
   */
  readonly returnCpuSeconds: number;
  readonly returnMb: number;
  readonly returnLimitSeconds: number;
}

const kibInMib = 1_024;

/** @param connections of the replica */
export function replicaCost(mesh: ScaledMesh, connections: number, of: Measured = measured): ReplicaCost {
  const { services, namespaces, seen, endpointChanges, routeChanges, hasTls } = mesh;
  const { replica, cpuMs, bytes, limits } = of;
  // Services that are seen stand for those whose rules the namespace's proxies need.
  const kib =
    services * replica.serviceKib.value +
    seen * namespaces * replica.serviceInNamespaceKib.value +
    connections * (hasTls ? replica.secureConnectionKib : replica.connectionKib).value;
  const concerned = connections * (seen / services);
  const routeChangeBytes = concerned * seen * bytes.routePerService.value;
  const changesBytes = endpointChanges * concerned * bytes.endpointChange.value + routeChanges * routeChangeBytes;
  const openMs = cpuMs.open.value + seen * cpuMs.openPerService.value;
  return {
    connections,
    residentMib: replica.restMib.value + kib / kibInMib,
    changesCpu:
      (concerned * (endpointChanges * cpuMs.endpointChange.value + routeChanges * cpuMs.routeChange.value)) / 1_000,
    changesMbitPerSecond: (changesBytes * 8) / 1e6,
    routeChangeMb: routeChangeBytes / 1e6,
    returnCpuSeconds: (connections * openMs) / 1_000,
    returnMb: (connections * bytes.comeBack.value) / 1e6,
    returnLimitSeconds: connections / limits.streamsPerSecond.value,
  };
}

/** Steps of what the chart requests. */
const requestStepMib = 64;
/** Limit of a container, of its request: pushes to all proxies, and collections that come late. */
const limitOfRequest = 2;

/** Memory of a replica as the chart requests and limits it (`chartpilot.resources`), in MiB. */
export function replicaResources(mesh: ScaledMesh, connections: number): { requestMib: number; limitMib: number } {
  const requestMib = Math.ceil(replicaCost(mesh, connections).residentMib / requestStepMib) * requestStepMib;
  return { requestMib, limitMib: limitOfRequest * requestMib };
}

/** Of all replicas together. */
export interface ApiServerCost {
  readonly replicas: number;
  readonly watches: number;
  /** Requests and bookmarks, when nothing changes. */
  readonly restPerSecond: number;
  /** All replicas start: what is listed. */
  readonly startGb: number;
  /** One replica reads what it listed. */
  readonly startCpuSeconds: number;
  /** One object changes. */
  readonly changeMb: number;
  readonly changesMbitPerSecond: number;
}

/** @param of objects besides pods: three for a service */
export function apiServerCost(mesh: ScaledMesh, replicas: number, of: Measured = measured): ApiServerCost {
  const { kinds, podBytes, podCpuMs, objectBytes, watchSeconds, bookmarkSeconds } = of.apiServer;
  const watches = replicas * kinds.value;
  const listed = mesh.proxies * podBytes.value + mesh.services * 3 * objectBytes.value;
  const changeBytes = replicas * objectBytes.value;
  return {
    replicas,
    watches,
    restPerSecond: watches / watchSeconds.value + watches / bookmarkSeconds.value,
    startGb: (replicas * listed) / 1e9,
    startCpuSeconds: (mesh.proxies * podCpuMs.value) / 1_000,
    changeMb: changeBytes / 1e6,
    changesMbitPerSecond: ((mesh.endpointChanges + mesh.routeChanges) * changeBytes * 8) / 1e6,
  };
}
