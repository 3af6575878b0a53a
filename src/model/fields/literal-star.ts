/** Exact and prefix matches compare every character: a `*` in them is no wildcard. */
import { doubtful, type Violation } from './violation.ts';

/**
 * Warning about a path with a `*` that is compared as it is.
 *
 * @param correction how this kind of object matches the paths below another one, where `below` is that path
 */
export function literalStarInPath(path: string, correction: (below: string) => string): Violation | undefined {
  const star = path.indexOf('*');
  if (star < 0) return undefined;
  const isAtEnd = star === path.length - 1;
  const advice = isAtEnd ? correction(path.slice(0, star) || '/') : 'use a regular expression for "any text"';
  return doubtful(`matches only paths with the character "*", which is no wildcard here: ${advice}`, path);
}
