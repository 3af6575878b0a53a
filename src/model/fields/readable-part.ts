/**
 * Stores the readable part of a value with errors. Checks across fields use it, so that all errors are reported together, without consequential ones.
 */

const unreadable: unique symbol = Symbol('unreadable');

const parts = new WeakMap<object, unknown>();

export function rememberPart(errors: object, part: unknown): void {
  parts.set(errors, part);
}

export function partOf(errors: object): unknown {
  return parts.has(errors) ? parts.get(errors) : unreadable;
}

export const missingPart: unknown = unreadable;

/** Returns `undefined` if no part is stored, or if `use` reads an unreadable field. */
export function withReadablePart<A, B>(errors: object, use: (part: A) => B): B | undefined {
  const part = partOf(errors);
  if (part === unreadable) return undefined;
  try {
    return use(guarded(part) as A);
  } catch (error) {
    if (error === unreadable) return undefined;
    throw error;
  }
}

function guarded(part: unknown): unknown {
  if (part === unreadable) throw unreadable;
  // Frozen objects are constants of the program, without unreadable fields.
  if (typeof part !== 'object' || part === null || Object.isFrozen(part)) return part;
  return new Proxy(part, {
    get: (target, key) => guarded(Reflect.get(target, key)),
  });
}
