/** Plans that are models for those of other clients: of most virtual hosts all clients have the same. */
import { onceFor } from '../../../model/collections/once-for.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import { commonShapes } from '../../sharing/common-shape.ts';
import { differingHosts } from '../../sharing/differing-hosts.ts';
import type { RoutePlan } from './planned-routes.ts';
import { type ServiceGroup, serviceGroups } from './service-groups.ts';
import { isCalledTheSame, isSameFor, type MadeVirtualHost, type Surroundings } from './sidecar-virtual-hosts.ts';

/** The plan of any client that has the same services under the same names: of most virtual hosts all have the very same. */
export interface Model {
  readonly plan: RoutePlan;
  readonly mesh: PushContext['mesh'];
  /** Hosts that mean something else to its client than to everybody; undefined: too many. */
  readonly differing: ReadonlySet<string> | undefined;
  /** The search domain of its client. */
  readonly dnsDomain: string;
}

export const models = onceFor((_: readonly ServiceGroup[]) => new Map<string, Model>());
/** The one made last of a context, for clients whose services nobody else has: what they have besides is little. */
export const latest = onceFor((_: PushContext) => new Map<string, Model>());
/** Configurations of the same services that differ in more than the client. */
export const maxModels = 16;

export function modelKey({ selection, push }: Surroundings): string {
  return `${selection.port} ${selection.listenerPort} ${push.features.absoluteNames}`;
}

export function modelFor(around: Surroundings): Model | undefined {
  const { push } = around;
  const key = modelKey(around);
  const model = models(groupsOf(around)).get(key);
  // Settings are in all routes.
  return model?.mesh === push.mesh ? model : latest(push).get(key);
}

export type SameAs = (made: MadeVirtualHost, hostname: string) => boolean;

export function differingFromEverybody({ shape, push }: Surroundings): ReadonlySet<string> | undefined {
  const [everybody] = commonShapes(shape, push);
  return everybody && differingHosts(shape, everybody, push);
}

/** What a client may have of a plan that was made for another one. */
export interface Likeness {
  /** Whether it gets what was made, of a host that nothing touched since: few are asked what they lead to. */
  readonly isSame: SameAs;
  /** Hosts that may mean something else to the one than to the other; undefined: any may. */
  readonly differing: ReadonlySet<string> | undefined;
  /** Their search domains. */
  readonly domains: readonly [string, string];
}

export function likenessOf(others: Model, around: Surroundings): Likeness {
  const theirs = others.differing;
  const own = differingFromEverybody(around);
  const domains = [others.dnsDomain, around.shape.dnsDomain] as const;
  if (own === undefined || theirs === undefined) {
    return { isSame: (made, hostname) => isSameFor(made, hostname, around), differing: undefined, domains };
  }
  const differing = new Set([...own, ...theirs]);
  const isSame: SameAs = (made, hostname) =>
    made.routes.leadsTo.some((host) => differing.has(host))
      ? isSameFor(made, hostname, around)
      : isCalledTheSame(made, hostname, around);
  return { isSame, differing, domains };
}

export function groupsOf({ selection, shape, push }: Surroundings): readonly ServiceGroup[] {
  return serviceGroups(selection.egress.services, selection, shape, push);
}
