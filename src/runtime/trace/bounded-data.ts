/**
 * Data of anybody's program made fit for a trace: plain, of bounded size, and never an error. Own charts hold plain data and need
 * none of it; a foreign context may go round in circles, hold a whole page, or throw when it is looked at.
 */

import type { AnyActorRef } from 'xstate';
import { actorName } from './known-actors.ts';

/** Values in one piece of data; what is beyond is cut. */
const mostValues = 5_000;
const mostItems = 1_000;
const deepest = 12;
/** Far more than a trace shows, but not a whole file: patterns of secrets look through all of it. */
const longestText = 20_000;

/** Stands where something leads back to what it is in. */
export const cycle = '[cycle]';
/** Stands where a field threw when it was read. */
export const unreadable = '[unreadable]';
/** Stands where there was more than anybody reads. */
export const cutOff = '… (more)';

/** A copy of what may be anything. The same data gives the same copy. */
export function boundedData(value: unknown): unknown {
  let left = mostValues;
  const around = new Set<object>();

  const copy = (item: unknown, depth: number): unknown => {
    if (typeof item === 'string') {
      return item.length > longestText ? `${item.slice(0, longestText)}… (${item.length} characters)` : item;
    }
    if (typeof item !== 'object' || item === null) return typeof item === 'symbol' ? String(item) : item;
    if (around.has(item)) return cycle;
    if (depth >= deepest) return '[deep]';
    around.add(item);
    try {
      return Array.isArray(item) ? list(item, depth + 1) : record(item, depth + 1);
    } catch {
      return unreadable;
    } finally {
      around.delete(item);
    }
  };

  const list = (items: readonly unknown[], depth: number): unknown => {
    const copies: unknown[] = [];
    for (let i = 0; i < items.length; i++) {
      if (i >= mostItems || left-- <= 0) return [...copies, `… (${items.length} items)`];
      copies.push(copy(field(items, i), depth));
    }
    return copies;
  };

  const record = (item: object, depth: number): unknown => {
    const prototype: unknown = Object.getPrototypeOf(item);
    // As redaction has it: what is no plain data is named, not walked through.
    if (item instanceof Error) return String(field(item, 'message'));
    if (prototype !== Object.prototype && prototype !== null)
      return isActor(item) ? actorText(item) : `[${nameOf(item)}]`;
    const copies = new Map<string, unknown>();
    for (const key of Object.keys(item)) {
      if (left-- <= 0) {
        copies.set('…', cutOff);
        break;
      }
      // A field of this name that is assigned later sets a prototype.
      if (key !== '__proto__') copies.set(key, copy(field(item, key), depth));
    }
    return Object.fromEntries(copies);
  };
  return copy(value, 0);
}

function field(item: object, key: string | number): unknown {
  try {
    return (item as Record<string | number, unknown>)[key];
  } catch {
    return unreadable;
  }
}

function isActor(item: object): item is AnyActorRef {
  return typeof field(item, 'getSnapshot') === 'function' && typeof field(item, 'id') === 'string' && '_parent' in item;
}

/** By the name that the actor has in the trace, unless it is one of several roots of the same id. */
const actorText = (ref: AnyActorRef): string => `[Actor ${actorName(ref, true)}]`;

function nameOf(item: object): string {
  const { name } = (field(item, 'constructor') ?? {}) as { name?: unknown };
  return typeof name === 'string' && name !== '' ? name : 'object';
}
