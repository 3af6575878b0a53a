import { type ConfigKey, fieldText } from '../../model/config/config.ts';
import type { Origin } from '../inputs/message-origin.ts';

export interface Limitation {
  /** The objects that cause the limitation, with their fields if known; empty if no object causes it. */
  readonly origins: readonly Origin[];
  /** How gRPC behaves instead, as a sentence without a full stop. */
  readonly text: string;
}

export interface WithLimitations<Message> {
  readonly message: Message;
  readonly limitations: readonly Limitation[];
}

export function limitationText({ origins, text }: Limitation): string {
  return origins.length === 0 ? text : `${origins.map(originText).join(', ')}: ${text}`;
}

function originText({ key: { kind, namespace, name }, path }: Origin): string {
  const object = `${kind} ${namespace}/${name}`;
  return path === undefined ? object : `${object} ${fieldText(path)}`;
}

export function objectOrigins({ kind, namespace, name }: ConfigKey): readonly Origin[] {
  return [{ key: { kind, namespace, name } }];
}

/** Returns the first origin with a field path, otherwise the first origin. */
export function specificOrigins(origins: readonly Origin[]): readonly Origin[] {
  const origin = origins.find(({ path }) => path !== undefined) ?? origins[0];
  return origin === undefined ? [] : [origin];
}
