/**
 * Stores the readable part of a value with errors. Checks across fields use it, so that all errors are reported together, without follow-up errors.
 */

const unreadableMark: unique symbol = Symbol('unreadable');

const partsByErrors = new WeakMap<object, unknown>();

export function storePart(errors: object, readPart: unknown): void {
  partsByErrors.set(errors, readPart);
}

export function partOf(errors: object): unknown {
  return partsByErrors.has(errors) ? partsByErrors.get(errors) : unreadableMark;
}

export const missingPart: unknown = unreadableMark;

/** Returns `undefined` if no part is stored, or if `convert` reads an unreadable field. */
export function withReadablePart<A, B>(errors: object, convert: (part: A) => B): B | undefined {
  const readPart = partOf(errors);
  if (readPart === unreadableMark) return undefined;
  try {
    return convert(withGuard(readPart) as A);
  } catch (error) {
    if (error === unreadableMark) return undefined;
    throw error;
  }
}

function withGuard(readPart: unknown): unknown {
  if (readPart === unreadableMark) throw unreadableMark;
  // Frozen objects are constants of the program, without unreadable fields.
  if (typeof readPart !== 'object' || readPart === null || Object.isFrozen(readPart)) return readPart;
  return new Proxy(readPart, {
    get: (target, key) => withGuard(Reflect.get(target, key)),
  });
}
