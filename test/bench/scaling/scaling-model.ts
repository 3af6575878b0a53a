/**
 * Cost of many proxies, computed from measurements of one replica (`measured.json`), for the tables of docs/scaling.md. Pure. The model only adds and
 * multiplies; the document lists costs that do not scale linearly.
 */
import measured from './measured.json' with { type: 'json' };

export type Measured = typeof measured;

export interface ScaledMesh {
  readonly proxies: number;
  readonly services: number;
  readonly namespaces: number;
  /** Number of services that a proxy imports. */
  readonly seen: number;
  /** Changes per second in the whole mesh, each of one service. */
  readonly endpointChanges: number;
  readonly routeChanges: number;
  readonly hasTls: boolean;
}

/** Cost of one replica, unless stated otherwise. */
export interface ReplicaCost {
  readonly connections: number;
  readonly residentMib: number;
  /** Share of a core. */
  readonly changesCpu: number;
  readonly changesMbitPerSecond: number;
  /** Data of one route change of a service, sent to all proxies that import it. */
  readonly routeChangeMb: number;
  /**
   * All connections reopen at any replica without configuration changes: CPU time, bytes in delta, and duration at the
   * limit of new streams.
   */
  readonly returnCpuSeconds: number;
  readonly returnMb: number;
  readonly returnLimitSeconds: number;
}

const kibInMib = 1_024;

export function replicaCost(mesh: ScaledMesh, connections: number, measurements: Measured = measured): ReplicaCost {
  const { services, namespaces, seen, endpointChanges, routeChanges, hasTls } = mesh;
  const { replica, cpuMs, bytes, limits } = measurements;
  // `seen` also stands for the number of services whose rules the namespace's proxies need.
  const kib =
    services * replica.serviceKib.value +
    seen * namespaces * replica.serviceInNamespaceKib.value +
    connections * (hasTls ? replica.secureConnectionKib : replica.connectionKib).value;
  const affectedConnections = connections * (seen / services);
  const routeChangeBytes = affectedConnections * seen * bytes.routePerService.value;
  const changesBytes =
    endpointChanges * affectedConnections * bytes.endpointChange.value + routeChanges * routeChangeBytes;
  const openMs = cpuMs.open.value + seen * cpuMs.openPerService.value;
  return {
    connections,
    residentMib: replica.restMib.value + kib / kibInMib,
    changesCpu:
      (affectedConnections * (endpointChanges * cpuMs.endpointChange.value + routeChanges * cpuMs.routeChange.value)) /
      1_000,
    changesMbitPerSecond: (changesBytes * 8) / 1e6,
    routeChangeMb: routeChangeBytes / 1e6,
    returnCpuSeconds: (connections * openMs) / 1_000,
    returnMb: (connections * bytes.comeBack.value) / 1e6,
    returnLimitSeconds: connections / limits.streamsPerSecond.value,
  };
}

/** Granularity of the chart's memory requests. */
const requestStepMib = 64;
/** Ratio of a container's limit to its request: a reserve for pushes to all proxies and late garbage collections. */
const limitOfRequest = 2;

/** Memory requests and limits of a replica in the chart (`chartpilot.resources`), in MiB. */
export function replicaResources(mesh: ScaledMesh, connections: number): { requestMib: number; limitMib: number } {
  const requestMib = Math.ceil(replicaCost(mesh, connections).residentMib / requestStepMib) * requestStepMib;
  return { requestMib, limitMib: limitOfRequest * requestMib };
}

/** Load of all replicas together. */
export interface ApiServerCost {
  readonly replicas: number;
  readonly watches: number;
  /** Events without changes: requests and bookmarks. */
  readonly restPerSecond: number;
  /** Size of the lists when all replicas start. */
  readonly startGb: number;
  /** CPU time of one replica to read its lists. */
  readonly startCpuSeconds: number;
  /** Size of the events for one changed object. */
  readonly changeMb: number;
  readonly changesMbitPerSecond: number;
}

/** @param measurements measurements; a service counts as three objects other than pods */
export function apiServerCost(mesh: ScaledMesh, replicas: number, measurements: Measured = measured): ApiServerCost {
  const { kinds, podBytes, podCpuMs, objectBytes, watchSeconds, bookmarkSeconds } = measurements.apiServer;
  const watches = replicas * kinds.value;
  const listBytes = mesh.proxies * podBytes.value + mesh.services * 3 * objectBytes.value;
  const changeBytes = replicas * objectBytes.value;
  return {
    replicas,
    watches,
    restPerSecond: watches / watchSeconds.value + watches / bookmarkSeconds.value,
    startGb: (replicas * listBytes) / 1e9,
    startCpuSeconds: (mesh.proxies * podCpuMs.value) / 1_000,
    changeMb: changeBytes / 1e6,
    changesMbitPerSecond: ((mesh.endpointChanges + mesh.routeChanges) * changeBytes * 8) / 1e6,
  };
}
