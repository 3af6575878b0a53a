/**
 * Origins of filter chains, virtual hosts, routes and clusters: the objects and fields that caused them. Messages that are decoded from cached bytes
 * have no origins, so `explain` generates without a cache.
 */
import type { Message } from '@bufbuild/protobuf';
import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import type { Origin } from '../../model/config/config.ts';
import { configKeyText } from '../../model/config/config.ts';
import type { MergedDestinationRule, ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import type { SidecarScope } from '../../model/push-context/sidecar-scope.ts';
import type { Service } from '../../model/services/service.ts';

export type { Origin };

const originsOfMessages = new WeakMap<Message, readonly Origin[]>();
const noOrigins: readonly Origin[] = [];

export function originsOf(message: Message): readonly Origin[] {
  return withoutRepetitions(originsOfMessages.get(message) ?? noOrigins);
}

export function withOrigins<M extends Message>(message: M, origins: readonly Origin[]): M {
  if (origins.length > 0) originsOfMessages.set(message, origins);
  return message;
}

export const serviceOrigin = memoizeOrigins((service: Service): readonly Origin[] => [{ key: service.origin }]);

/** DestinationRules of a host, first the one whose traffic policy applies. */
export const ruleOrigins = memoizeOrigins((rule: MergedDestinationRule): readonly Origin[] =>
  rule.origins.map((key) => ({ key })),
);

/** Origin of the cluster's subset if a single object defines it, otherwise the DestinationRules. */
export function subsetOrigins(rule: MergedDestinationRule | undefined, subset: string): readonly Origin[] {
  if (rule?.origins.length !== 1) return ruleOrigins(rule);
  const index = rule.config.spec.subsets?.findIndex(({ name }) => name === subset) ?? -1;
  if (index === -1) return ruleOrigins(rule);
  return [{ key: rule.origins[0]!, path: ['spec', 'subsets', index] }];
}

/** Origin of the route in the VirtualService; for a route of a delegate, also of the delegating route. */
export function httpRouteOrigins(virtualService: ResolvedVirtualService, index: number): readonly Origin[] {
  const sourceOrigins = virtualService.config.partOrigins?.[`http[${index}]`];
  return (
    virtualService.httpOrigins?.[index] ??
    sourceOrigins ?? [{ key: virtualService.origins[0]!, path: ['spec', 'http', index] }]
  );
}

export const virtualServiceOrigins = memoizeOrigins(
  (virtualService: ResolvedVirtualService): readonly Origin[] =>
    virtualService.config.partOrigins?.hosts ?? [{ key: virtualService.origins[0]!, path: ['spec', 'hosts'] }],
);

export function sidecarOrigin({ sidecar }: SidecarScope, ...path: readonly (string | number)[]): readonly Origin[] {
  if (sidecar === undefined) return noOrigins;
  const { kind, namespace, name } = sidecar;
  return [{ key: { kind, namespace, name }, path: ['spec', ...path] }];
}

function memoizeOrigins<T extends object>(
  compute: (target: T) => readonly Origin[],
): (of: T | undefined) => readonly Origin[] {
  const cachedCompute = memoizeByObject(compute);
  return (of) => (of === undefined ? noOrigins : cachedCompute(of));
}

function withoutRepetitions(origins: readonly Origin[]): readonly Origin[] {
  if (origins.length < 2) return origins;
  const text = ({ key, path = [] }: Origin): string => [configKeyText(key), ...path].join(' ');
  return [...new Map(origins.map((origin) => [text(origin), origin])).values()];
}
