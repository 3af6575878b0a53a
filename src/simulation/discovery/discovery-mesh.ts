/** The explored control plane serves a mesh of a few clusters. */
import { clusterType, endpointType, routeType } from '../../../machines/discovery/xds/ads-types.ts';

export const meshTypes = [clusterType, endpointType, routeType] as const;
export type MeshType = (typeof meshTypes)[number];

/** The number changes with the content. */
export type Resources = Readonly<Record<string, number>>;
export type Contents = Readonly<Record<MeshType, Resources>>;

export interface MeshContext {
  /** Starts at 1. */
  readonly number: number;
  readonly contents: Contents;
  /** Keys that differ from the previous context. */
  readonly changedKeys: ReadonlySet<string>;
  readonly forced: boolean;
}

/** `service` is added or removed. */
export type MeshEvent = 'endpoint' | 'cluster' | 'route' | 'service' | 'forced';

export const firstContents: Contents = {
  [clusterType]: { a: 0 },
  [endpointType]: { a: 0 },
  [routeType]: { r: 0 },
} as Contents;

/** Routes are configured before the first list of the registry, but no services are known. */
export const unlistedContents: Contents = { ...firstContents, [clusterType]: {}, [endpointType]: {} };

/** @param number of the change; becomes the content of the changed resources */
export function changedContents(contents: Contents, event: MeshEvent, number: number): Contents {
  const set = (type: MeshType, name: string): Contents[MeshType] => ({ ...contents[type], [name]: number });
  switch (event) {
    case 'endpoint':
      return { ...contents, [endpointType]: set(endpointType, 'a') };
    case 'cluster':
      return { ...contents, [clusterType]: set(clusterType, 'a'), [endpointType]: set(endpointType, 'a') };
    case 'route':
      return { ...contents, [routeType]: set(routeType, 'r') };
    case 'service':
      return { ...toggleService(contents, number), [routeType]: set(routeType, 'r') } as Contents;
    case 'forced':
      return contents;
  }
}

function toggleService(contents: Contents, number: number): Contents {
  const toggle = ({ b, ...otherResources }: Resources): Resources =>
    b === undefined ? { ...otherResources, b: number } : otherResources;
  return {
    ...contents,
    [clusterType]: toggle(contents[clusterType]),
    [endpointType]: toggle(contents[endpointType]),
  };
}

export const keysOf: Readonly<Record<MeshEvent, readonly string[]>> = {
  endpoint: ['Endpoints/ns/a'],
  cluster: ['ServiceEntry/ns/a'],
  route: ['VirtualService/ns/r'],
  service: ['ServiceEntry/ns/b', 'VirtualService/ns/r'],
  forced: [],
};

const affectedTypesByKind: Readonly<Record<string, readonly MeshType[]>> = {
  Endpoints: [endpointType],
  ServiceEntry: [clusterType, endpointType],
  VirtualService: [routeType],
};

export function typesToPush(keys: Iterable<string>): Set<string> {
  return new Set([...keys].flatMap((key) => affectedTypesByKind[key.slice(0, key.indexOf('/'))] ?? []));
}
