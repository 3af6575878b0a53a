/** Copies data of a foreign program; never throws. A foreign context may be cyclic, contain an entire web page, or throw when it is read. */

import type { AnyActorRef } from 'xstate';
import { actorName } from './known-actors.ts';

/** Maximum values copied from one context or event; further ones are omitted. */
const maxValues = 5_000;
const maxItems = 1_000;
const maxDepth = 12;
/** The patterns of secrets search the entire text; a trace shows far less. */
const maxTextLength = 20_000;

export const cycle = '[cycle]';
export const unreadableText = '[unreadable]';
export const truncationMarker = '… (more)';

/** The same data results in the same copy. */
export function boundedData(value: unknown): unknown {
  let remainingValues = maxValues;
  const ancestors = new Set<object>();

  const copy = (item: unknown, depth: number): unknown => {
    if (typeof item === 'string') {
      return item.length > maxTextLength ? `${item.slice(0, maxTextLength)}… (${item.length} characters)` : item;
    }
    if (typeof item !== 'object' || item === null) return typeof item === 'symbol' ? String(item) : item;
    if (ancestors.has(item)) return cycle;
    if (depth >= maxDepth) return '[deep]';
    ancestors.add(item);
    try {
      return Array.isArray(item) ? list(item, depth + 1) : record(item, depth + 1);
    } catch {
      return unreadableText;
    } finally {
      ancestors.delete(item);
    }
  };

  const list = (items: readonly unknown[], depth: number): unknown => {
    const copies: unknown[] = [];
    for (let i = 0; i < items.length; i++) {
      if (i >= maxItems || remainingValues-- <= 0) return [...copies, `… (${items.length} items)`];
      copies.push(copy(readProperty(items, i), depth));
    }
    return copies;
  };

  const record = (item: object, depth: number): unknown => {
    const prototype: unknown = Object.getPrototypeOf(item);
    // As in redaction, values other than plain data are named, not traversed.
    if (item instanceof Error) return String(readProperty(item, 'message'));
    if (prototype !== Object.prototype && prototype !== null)
      return isActor(item) ? actorText(item) : `[${nameOf(item)}]`;
    const copies = new Map<string, unknown>();
    for (const key of Object.keys(item)) {
      if (remainingValues-- <= 0) {
        copies.set('…', truncationMarker);
        break;
      }
      // A later assignment to `__proto__` would set the prototype.
      if (key !== '__proto__') copies.set(key, copy(readProperty(item, key), depth));
    }
    return Object.fromEntries(copies);
  };
  return copy(value, 0);
}

function readProperty(item: object, key: string | number): unknown {
  try {
    return (item as Record<string | number, unknown>)[key];
  } catch {
    return unreadableText;
  }
}

function isActor(item: object): item is AnyActorRef {
  return (
    typeof readProperty(item, 'getSnapshot') === 'function' &&
    typeof readProperty(item, 'id') === 'string' &&
    '_parent' in item
  );
}

const actorText = (ref: AnyActorRef): string => `[Actor ${actorName(ref, true)}]`;

function nameOf(item: object): string {
  const { name } = (readProperty(item, 'constructor') ?? {}) as { name?: unknown };
  return typeof name === 'string' && name !== '' ? name : 'object';
}
