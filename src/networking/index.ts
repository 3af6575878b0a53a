/** The generators of the control plane, by type URL. */
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
import { type CachedType, type Memory, noMemory } from './inputs/generator-memory.ts';
import { EnvoyResource, type PartToEncode } from './messages/resource.ts';
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
  differingClusters,
  precomputeClusters,
} from './patches/generators.ts';
import { patchSetOf } from './patches/patch-set.ts';
import { patchStatus, wasAttempted } from './patches/status.ts';
import {
  endpointProjection,
  type Projection,
  patchProjection,
  routeProjection,
  secretProjection,
} from './projection.ts';
import { precomputeRoutes } from './routes/build.ts';
import { buildSecrets } from './secrets/build.ts';
import { subjectOfCredential } from './secrets/credential-name.ts';
import { commonShapes } from './sharing/common-shape.ts';
import { differingHosts } from './sharing/differing-hosts.ts';
import { isMutualTlsTriedAt } from './traffic/upstream-mutual-tls.ts';
import { hasSameClusters, hasSameEndpoints, hasSameListeners, type IsUntouched } from './untouched.ts';

export {
  addressList,
  buildClusters,
  buildEndpoints,
  buildExtensions,
  buildListeners,
  buildNameTable,
  buildRoutes,
  buildSecrets,
  type CachedType,
  clusterType,
  EnvoyResource,
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
  routeType,
  secretType,
  wasAttempted as wasTried,
};

/** Limits the resource names that a change affects to names with the subject of the changed object, such as a host or credential. */
export interface NameNarrowing {
  /** Kinds whose objects have exactly one subject. A change of another kind may affect any name. */
  readonly kinds: ReadonlySet<string>;
  readonly subjectOfName: (name: string) => string;
  readonly subjectOfKey: (key: ConfigKey) => string;
}

/** Composes a list from resources of a common shape and the resources that differ. */
export interface ResourceSharing {
  /** The most common shape is first. */
  readonly commonShapes: (shape: ProxyShape, push: PushContext) => readonly ProxyShape[];
  /** `undefined` if too many subjects differ. */
  readonly findDiffering: (shape: ProxyShape, common: ProxyShape, push: PushContext) => ReadonlySet<string> | undefined;
}

/** `undefined` if the resources cannot be separated. */
type DifferingResourceBuilder = (
  shape: ProxyShape,
  common: ProxyShape,
  push: PushContext,
  subjects: ReadonlySet<string>,
  memory?: Memory,
) => { readonly resources: readonly EnvoyResource[]; readonly removedNames: readonly string[] } | undefined;

interface GeneratorBase {
  /**
   * The properties of a shape on which the list (or its precomputed part) depends. If absent, the list depends on all properties, and nothing is
   * precomputed.
   */
  readonly projection?: Projection;
  /** Whether a change has no effect on the type, although the dependency tables list its kind. */
  readonly isUntouched?: IsUntouched;
  /**
   * Precomputes shared resources into the memory step by step. Absent if that is unnecessary.
   *
   * @returns resources to encode after each step, if any
   */
  readonly precompute?: (
    shape: ProxyShape,
    push: PushContext,
    memory: Memory,
    names: readonly string[],
  ) => Iterator<PartToEncode | undefined>;
}

/** With `all`, a proxy receives all resources of the type; with `named`, it receives those that it requests. */
export type Generator =
  | (GeneratorBase & {
      readonly scope: 'all';
      readonly build: (shape: ProxyShape, push: PushContext, memory?: Memory) => EnvoyResource[];
      /** Like {@link build}, but yields regularly. Absent if building is fast, or slow parts are precomputed. */
      readonly building?: (
        shape: ProxyShape,
        push: PushContext,
        memory: Memory,
      ) => Iterator<undefined, EnvoyResource[]>;
      readonly sharing?: ResourceSharing & { readonly buildDiffering: DifferingResourceBuilder };
    })
  | (GeneratorBase & {
      readonly scope: 'named';
      readonly build: (
        shape: ProxyShape,
        push: PushContext,
        names: readonly string[],
        memory?: Memory,
      ) => EnvoyResource[];
      /**
       * Like {@link build}, but yields regularly. Absent if building is fast.
       *
       * @returns resources to encode before each step, if any
       */
      readonly building?: (
        shape: ProxyShape,
        push: PushContext,
        names: readonly string[],
        memory: Memory,
      ) => Iterator<PartToEncode | undefined, EnvoyResource[]>;
      readonly narrowing?: NameNarrowing;
      readonly sharing?: ResourceSharing & {
        /** Requested names that have other subjects but also depend on these subjects. */
        readonly alsoAbout: (subjects: ReadonlySet<string>, names: readonly string[]) => readonly string[];
      };
    });

const hostNarrowing: NameNarrowing = {
  kinds: new Set(['ServiceEntry', 'Endpoints']),
  subjectOfName: hostOfAssignment,
  subjectOfKey: ({ name }) => name,
};

const sharingByHosts: ResourceSharing = { commonShapes, findDiffering: differingHosts };

/** Treats Secrets and ConfigMaps with and without the suffix `-cacert` as one subject, because any credential may refer to each. */
const credentialNarrowing: NameNarrowing = {
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
      isUntouched: hasSameClusters,
      precompute: precomputeClusters,
      projection: patchProjection,
      // The clusters of a gateway also depend on its Gateway objects.
      sharing: {
        ...sharingByHosts,
        buildDiffering: differingClusters,
        commonShapes: (shape, push) => (shape.type === 'router' ? [] : commonShapes(shape, push)),
      },
    },
  ],
  [
    endpointType,
    {
      scope: 'named',
      build: buildEndpoints,
      narrowing: hostNarrowing,
      sharing: { ...sharingByHosts, alsoAbout: namesByAliases },
      isUntouched: hasSameEndpoints,
      projection: endpointProjection,
    },
  ],
  [listenerType, { scope: 'all', build: buildListeners, building: buildingListeners, isUntouched: hasSameListeners }],
  [
    routeType,
    {
      scope: 'named',
      build: buildRoutes,
      building: buildingRoutes,
      projection: routeProjection,
      precompute: precomputeRoutes,
    },
  ],
  [nameTableType, { scope: 'all', build: buildNameTable }],
  [extensionType, { scope: 'named', build: buildExtensions }],
  [bootstrapType, { scope: 'named', build: buildBootstrapPatches }],
  [secretType, { scope: 'named', build: buildSecrets, narrowing: credentialNarrowing, projection: secretProjection }],
]);
