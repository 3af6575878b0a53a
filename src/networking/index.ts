/** The generators of the control plane, by the type URL of what they make. */
import {
  bootstrapType,
  clusterType,
  endpointType,
  extensionType,
  listenerType,
  nameTableType,
  routeType,
  secretType,
} from '../../machines/discovery/xds/ads-types.ts';
import type { ConfigKey } from '../model/config/config.ts';
import type { ProxyShape } from '../model/proxy/proxy-shape.ts';
import type { PushContext } from '../model/push-context/push-context.ts';
import { hasNoProvider } from './authorization/custom.ts';
import { buildEndpoints, hostOfAssignment, namesByAliases } from './endpoints/build.ts';
import { explainEndpoints } from './endpoints/explain-endpoints.ts';
import { hostNameEndpoints } from './endpoints/host-name-endpoints.ts';
import { addressList } from './endpoints/omission.ts';
import { type Memory, noMemory, type RememberedType } from './inputs/generator-memory.ts';
import { type AheadPart, Resource } from './messages/resource.ts';
import { buildNameTable } from './name-table/build.ts';
import { buildBootstrapPatches } from './patches/bootstrap.ts';
import {
  buildClusters,
  buildExtensions,
  buildingClusters,
  buildingListeners,
  buildingRoutes,
  buildListeners,
  buildRoutes,
  clustersAhead,
  ownClusters,
} from './patches/generators.ts';
import { patchSetOf } from './patches/patch-set.ts';
import { patchStatus, wasTried } from './patches/status.ts';
import {
  endpointProjection,
  type Projection,
  patchProjection,
  routeProjection,
  secretProjection,
} from './projection.ts';
import { buildRoutesAhead } from './routes/build.ts';
import { buildSecrets } from './secrets/build.ts';
import { subjectOfCredential } from './secrets/credential-name.ts';
import { commonShapes } from './sharing/common-shape.ts';
import { differingHosts } from './sharing/differing-hosts.ts';
import { isMutualTlsTriedAt } from './traffic/upstream-mutual-tls.ts';
import { type IsUntouched, untouchedClusters, untouchedEndpoints, untouchedListeners } from './untouched.ts';

export {
  addressList,
  buildClusters,
  buildEndpoints,
  buildExtensions,
  buildListeners,
  buildNameTable,
  buildRoutes,
  buildSecrets,
  clusterType,
  endpointType,
  explainEndpoints,
  extensionType,
  hasNoProvider,
  hostNameEndpoints,
  isMutualTlsTriedAt,
  listenerType,
  type Memory,
  nameTableType,
  noMemory,
  patchSetOf,
  patchStatus,
  type RememberedType,
  Resource,
  routeType,
  secretType,
  wasTried,
};

/** Which of the asked names a change can be about: those of the changed object's subject. */
export interface Narrowing {
  /** Kinds of which a changed object has one subject; a change of another kind can be about any name. */
  readonly kinds: ReadonlySet<string>;
  readonly subjectOfName: (name: string) => string;
  readonly subjectOfKey: (key: ConfigKey) => string;
}

/** How lists are put together of what many shapes have, made once, and what is a shape's own. */
export interface Sharing {
  /** The shapes whose lists a shape's may be made from, the most common first. */
  readonly commonShapes: (shape: ProxyShape, push: PushContext) => readonly ProxyShape[];
  /** Subjects of which the shape may have something else than the common one; undefined: of too many. */
  readonly differing: (shape: ProxyShape, common: ProxyShape, push: PushContext) => ReadonlySet<string> | undefined;
}

/** What of a list of everything is a shape's own; undefined where that cannot be told apart. */
type OwnOfAll = (
  shape: ProxyShape,
  common: ProxyShape,
  push: PushContext,
  subjects: ReadonlySet<string>,
  memory?: Memory,
) => { readonly resources: readonly Resource[]; readonly without: readonly string[] } | undefined;

interface Untouched {
  /** What of a shape the list depends on, of a list of everything what is made ahead of it; absent: all of it, nothing. */
  readonly projection?: Projection;
  /** Whether a change that the tables let through leaves the type as it is after all. */
  readonly isUntouched?: IsUntouched;
  /**
   * Makes what lists of many proxies share, a little at a time, into the memory: a list that is made then takes little.
   * Absent: it takes little anyway.
   *
   * @returns what there is to encode, if anything, of each little
   */
  readonly ahead?: (
    shape: ProxyShape,
    push: PushContext,
    memory: Memory,
    names: readonly string[],
  ) => Iterator<AheadPart | undefined>;
}

/** `all`: a proxy has every resource of the type. `named`: it has those that it asks for. */
export type Generator =
  | (Untouched & {
      readonly scope: 'all';
      readonly build: (shape: ProxyShape, push: PushContext, memory?: Memory) => Resource[];
      /** The same with rests; absent: it takes little, or what takes long is made ahead. */
      readonly building?: (shape: ProxyShape, push: PushContext, memory: Memory) => Iterator<undefined, Resource[]>;
      readonly sharing?: Sharing & { readonly own: OwnOfAll };
    })
  | (Untouched & {
      readonly scope: 'named';
      /** One for each name, or none for a name that means nothing. */
      readonly build: (shape: ProxyShape, push: PushContext, names: readonly string[], memory?: Memory) => Resource[];
      /** The same with rests; absent: it takes little. @returns what there is to encode before each rest, if anything */
      readonly building?: (
        shape: ProxyShape,
        push: PushContext,
        names: readonly string[],
        memory: Memory,
      ) => Iterator<AheadPart | undefined, Resource[]>;
      readonly narrowing?: Narrowing;
      /** Subjects are those of the narrowing. */
      readonly sharing?: Sharing & {
        /** Names of other subjects that are about some as well. */
        readonly alsoAbout: (subjects: ReadonlySet<string>, names: readonly string[]) => readonly string[];
      };
    });

const byHost: Narrowing = {
  kinds: new Set(['ServiceEntry', 'Endpoints']),
  subjectOfName: hostOfAssignment,
  subjectOfKey: ({ name }) => name,
};

const byHosts: Sharing = { commonShapes, differing: differingHosts };

/** Secret and ConfigMap of one name, and with `-cacert` behind it, count as one: any of them may be what was asked for. */
const byCredential: Narrowing = {
  kinds: new Set(['Secret', 'ConfigMap']),
  subjectOfName: subjectOfCredential,
  subjectOfKey: ({ name }) => subjectOfCredential(name),
};

export const generators: ReadonlyMap<string, Generator> = new Map<string, Generator>([
  [
    clusterType,
    {
      scope: 'all',
      build: buildClusters,
      building: buildingClusters,
      isUntouched: untouchedClusters,
      ahead: clustersAhead,
      projection: patchProjection,
      // A gateway's clusters are of its own Gateway objects as well.
      sharing: {
        ...byHosts,
        own: ownClusters,
        commonShapes: (shape, push) => (shape.type === 'router' ? [] : commonShapes(shape, push)),
      },
    },
  ],
  [
    endpointType,
    {
      scope: 'named',
      build: buildEndpoints,
      narrowing: byHost,
      sharing: { ...byHosts, alsoAbout: namesByAliases },
      isUntouched: untouchedEndpoints,
      projection: endpointProjection,
    },
  ],
  [listenerType, { scope: 'all', build: buildListeners, building: buildingListeners, isUntouched: untouchedListeners }],
  [
    routeType,
    {
      scope: 'named',
      build: buildRoutes,
      building: buildingRoutes,
      projection: routeProjection,
      ahead: buildRoutesAhead,
    },
  ],
  [nameTableType, { scope: 'all', build: buildNameTable }],
  [extensionType, { scope: 'named', build: buildExtensions }],
  [bootstrapType, { scope: 'named', build: buildBootstrapPatches }],
  [secretType, { scope: 'named', build: buildSecrets, narrowing: byCredential, projection: secretProjection }],
]);
