/**
 * What could be read of a value that has mistakes, so that a check of what several fields mean together is made as far as
 * its fields could be read: a person is told all mistakes at once, and none that only follows from another.
 */

/** Stands in a part for what could not be read. */
const unreadable: unique symbol = Symbol('unreadable');

const parts = new WeakMap<object, unknown>();

/** Remembers a part by the list of the mistakes that it was found with. */
export function rememberPart(errors: object, part: unknown): void {
  parts.set(errors, part);
}

/** What was remembered; {@link unreadable} when nothing was. */
export function partOf(errors: object): unknown {
  return parts.has(errors) ? parts.get(errors) : unreadable;
}

/** What takes the place of a field that is missing. */
export const missingPart: unknown = unreadable;

/**
 * Looks at the part of a value that has mistakes. Undefined when there is none, and when `look` asks for what could not be
 * read.
 */
export function lookAtPart<A, B>(errors: object, look: (part: A) => B): B | undefined {
  const part = partOf(errors);
  if (part === unreadable) return undefined;
  try {
    return look(guarded(part) as A);
  } catch (error) {
    if (error === unreadable) return undefined;
    throw error;
  }
}

/** The same, but whoever reads what could not be read is thrown out. */
function guarded(part: unknown): unknown {
  if (part === unreadable) throw unreadable;
  // What is frozen is a constant of the program.
  if (typeof part !== 'object' || part === null || Object.isFrozen(part)) return part;
  return new Proxy(part, {
    get: (target, key) => guarded(Reflect.get(target, key)),
  });
}
