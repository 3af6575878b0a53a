/** A model is a plan that other clients use as a starting point, because most virtual hosts are the same for all clients. */
import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import { commonShapes } from '../../sharing/common-shape.ts';
import { differingHosts } from '../../sharing/differing-hosts.ts';
import type { RoutePlan } from './planned-routes.ts';
import { type ServiceGroup, serviceGroups } from './service-groups.ts';
import { type CachedVirtualHost, hasSameNamesFor, isReusableFor, type PlanContext } from './sidecar-virtual-hosts.ts';

export interface PlanModel {
  readonly plan: RoutePlan;
  readonly mesh: PushContext['mesh'];
  /** Hosts that resolve differently for this client than for the mesh; `undefined` if there are too many. */
  readonly differingHosts: ReadonlySet<string> | undefined;
  readonly dnsDomain: string;
}

export const modelsOfGroups = memoizeByObject((_: readonly ServiceGroup[]) => new Map<string, PlanModel>());
/** The last model of a push context. Clients with their own list of services use it. */
export const latestModels = memoizeByObject((_: PushContext) => new Map<string, PlanModel>());
export const maxModels = 16;

export function modelKey({ selection, push }: PlanContext): string {
  return `${selection.port} ${selection.listenerPort} ${push.features.absoluteNames}`;
}

export function latestModelFor(context: PlanContext): PlanModel | undefined {
  const { push } = context;
  const key = modelKey(context);
  const model = modelsOfGroups(groupsOf(context)).get(key);
  // All routes depend on mesh settings.
  return model?.mesh === push.mesh ? model : latestModels(push).get(key);
}

export type IsReusable = (cached: CachedVirtualHost, hostname: string) => boolean;

export function hostsResolvedDifferently({ shape, push }: PlanContext): ReadonlySet<string> | undefined {
  const [meshShape] = commonShapes(shape, push);
  return meshShape && differingHosts(shape, meshShape, push);
}

export interface ModelSimilarity {
  readonly isReusable: IsReusable;
  readonly differingHosts: ReadonlySet<string> | undefined;
  readonly dnsDomains: readonly [string, string];
}

export function similarityOf(model: PlanModel, context: PlanContext): ModelSimilarity {
  const modelDiffering = model.differingHosts;
  const hostsDifferingForClient = hostsResolvedDifferently(context);
  const dnsDomains = [model.dnsDomain, context.shape.dnsDomain] as const;
  if (hostsDifferingForClient === undefined || modelDiffering === undefined) {
    return {
      isReusable: (cachedHost, hostname) => isReusableFor(cachedHost, hostname, context),
      differingHosts: undefined,
      dnsDomains,
    };
  }
  const differingNames = new Set([...hostsDifferingForClient, ...modelDiffering]);
  const isReusable: IsReusable = (cachedHost, hostname) =>
    cachedHost.routes.destinationHosts.some((host) => differingNames.has(host))
      ? isReusableFor(cachedHost, hostname, context)
      : hasSameNamesFor(cachedHost, hostname, context);
  return { isReusable, differingHosts: differingNames, dnsDomains };
}

export function groupsOf({ selection, shape, push }: PlanContext): readonly ServiceGroup[] {
  return serviceGroups(selection.egress.services, selection, shape, push);
}
