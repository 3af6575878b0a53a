/** What the explored control plane serves: a mesh of a few clusters, with contexts that are published one after the other. */
import { clusterType, endpointType, routeType } from '../../../machines/discovery/xds/ads-types.ts';

export const meshTypes = [clusterType, endpointType, routeType] as const;
export type MeshType = (typeof meshTypes)[number];

/** Content by name: a number that is another one whenever the content is. */
export type Resources = Readonly<Record<string, number>>;
export type Contents = Readonly<Record<MeshType, Resources>>;

/** What proxies are served from. */
export interface MeshContext {
  /** Counts from 1. */
  readonly number: number;
  readonly contents: Contents;
  /** What is not as in the context before. */
  readonly changed: ReadonlySet<string>;
  readonly forced: boolean;
}

/** What may change in the configuration: an endpoint; a cluster and its endpoints; a route; a service comes or goes. */
export type MeshEvent = 'endpoint' | 'cluster' | 'route' | 'service' | 'forced';

export const firstContents: Contents = {
  [clusterType]: { a: 0 },
  [endpointType]: { a: 0 },
  [routeType]: { r: 0 },
} as Contents;

/** Before the first list of the registry: routes are configured, and nobody knows of services. */
export const unlistedContents: Contents = { ...firstContents, [clusterType]: {}, [endpointType]: {} };

/** @param number of the change: what it touches has it for its content */
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
      return { ...toggled(contents, number), [routeType]: set(routeType, 'r') } as Contents;
    case 'forced':
      return contents;
  }
}

/** Service b is there, or is not. */
function toggled(contents: Contents, number: number): Contents {
  const toggle = ({ b, ...others }: Resources): Resources => (b === undefined ? { ...others, b: number } : others);
  return {
    ...contents,
    [clusterType]: toggle(contents[clusterType]),
    [endpointType]: toggle(contents[endpointType]),
  };
}

/** Keys as the sources tell `push` of them. */
export const keysOf: Readonly<Record<MeshEvent, readonly string[]>> = {
  endpoint: ['Endpoints/ns/a'],
  cluster: ['ServiceEntry/ns/a'],
  route: ['VirtualService/ns/r'],
  service: ['ServiceEntry/ns/b', 'VirtualService/ns/r'],
  forced: [],
};

const concernedBy: Readonly<Record<string, readonly MeshType[]>> = {
  Endpoints: [endpointType],
  ServiceEntry: [clusterType, endpointType],
  VirtualService: [routeType],
};

/** Which types a change of these objects concerns. */
export function typesToPush(keys: Iterable<string>): Set<string> {
  return new Set([...keys].flatMap((key) => concernedBy[key.slice(0, key.indexOf('/'))] ?? []));
}
