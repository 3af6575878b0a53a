/** What objects configure and gRPC does not do. */
import { type ConfigKey, fieldText } from '../../model/config/config.ts';
import type { Origin } from '../inputs/message-origin.ts';

export interface Limitation {
  /** The objects, with the field if one is known; empty for what no object configures. */
  readonly origins: readonly Origin[];
  /** What gRPC does instead, as a sentence without a full stop. */
  readonly text: string;
}

/** A generated message, and what of its configuration gRPC does not do. */
export interface Limited<Message> {
  readonly message: Message;
  readonly limitations: readonly Limitation[];
}

/** `VirtualService shop/echo spec.http[0]: mirroring is ignored`. */
export function limitationText({ origins, text }: Limitation): string {
  return origins.length === 0 ? text : `${origins.map(originText).join(', ')}: ${text}`;
}

function originText({ key: { kind, namespace, name }, path }: Origin): string {
  const object = `${kind} ${namespace}/${name}`;
  return path === undefined ? object : `${object} ${fieldText(path)}`;
}

/** The object as a whole, as the origin of a limitation. */
export function ofObject({ kind, namespace, name }: ConfigKey): readonly Origin[] {
  return [{ key: { kind, namespace, name } }];
}

/** The most specific of the origins: the first one with a path, else the first. */
export function mostSpecific(origins: readonly Origin[]): readonly Origin[] {
  const origin = origins.find(({ path }) => path !== undefined) ?? origins[0];
  return origin === undefined ? [] : [origin];
}
