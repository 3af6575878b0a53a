/**
 * Where the parts of a resource come from: the objects, and the fields in them, that made a filter chain, a virtual host,
 * a route or a cluster what it is. Kept beside the messages and never sent. A message that was made of its bytes again
 * has none; whoever asks (`explain`) generates without a memory and looks before anything is encoded.
 */
import type { Message } from '@bufbuild/protobuf';
import { onceFor } from '../../model/collections/once-for.ts';
import type { Origin } from '../../model/config/config.ts';
import { configKeyText } from '../../model/config/config.ts';
import type { MergedDestinationRule, ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import type { SidecarScope } from '../../model/push-context/sidecar-scope.ts';
import type { Service } from '../../model/services/service.ts';

export type { Origin };

const originsOfMessages = new WeakMap<Message, readonly Origin[]>();
const none: readonly Origin[] = [];

/** What decided most comes first; empty when nobody said. */
export function originsOf(message: Message): readonly Origin[] {
  return withoutRepetitions(originsOfMessages.get(message) ?? none);
}

/** The message itself, its origins noted. */
export function withOrigins<M extends Message>(message: M, origins: readonly Origin[]): M {
  if (origins.length > 0) originsOfMessages.set(message, origins);
  return message;
}

/** The object that a registry made the service of. */
export const serviceOrigin = memoized((service: Service): readonly Origin[] => [{ key: service.origin }]);

/** The rules for a host, the one whose traffic policy holds first. */
export const ruleOrigins = memoized((rule: MergedDestinationRule): readonly Origin[] =>
  rule.origins.map((key) => ({ key })),
);

/** The subset that a cluster is for, where one object says it; else the rules. */
export function subsetOrigins(rule: MergedDestinationRule | undefined, subset: string): readonly Origin[] {
  if (rule?.origins.length !== 1) return ruleOrigins(rule);
  const index = rule.config.spec.subsets?.findIndex(({ name }) => name === subset) ?? -1;
  if (index === -1) return ruleOrigins(rule);
  return [{ key: rule.origins[0]!, path: ['spec', 'subsets', index] }];
}

/** The route of the virtual service; of one that a delegate wrote: the delegate's route, then the one that led to it. */
export function httpRouteOrigins(service: ResolvedVirtualService, index: number): readonly Origin[] {
  const made = service.config.partOrigins?.[`http[${index}]`];
  return service.httpOrigins?.[index] ?? made ?? [{ key: service.origins[0]!, path: ['spec', 'http', index] }];
}

/** The virtual service's list of hosts; nothing for none. */
export const virtualServiceOrigins = memoized(
  (service: ResolvedVirtualService): readonly Origin[] =>
    service.config.partOrigins?.hosts ?? [{ key: service.origins[0]!, path: ['spec', 'hosts'] }],
);

/** A field of the Sidecar object that a scope follows; nothing for the default scope. */
export function sidecarOrigin({ sidecar }: SidecarScope, ...path: readonly (string | number)[]): readonly Origin[] {
  if (sidecar === undefined) return none;
  const { kind, namespace, name } = sidecar;
  return [{ key: { kind, namespace, name }, path: ['spec', ...path] }];
}

function memoized<T extends object>(make: (of: T) => readonly Origin[]): (of: T | undefined) => readonly Origin[] {
  const made = onceFor(make);
  return (of) => (of === undefined ? none : made(of));
}

function withoutRepetitions(origins: readonly Origin[]): readonly Origin[] {
  if (origins.length < 2) return origins;
  const text = ({ key, path = [] }: Origin): string => [configKeyText(key), ...path].join(' ');
  return [...new Map(origins.map((origin) => [text(origin), origin])).values()];
}
