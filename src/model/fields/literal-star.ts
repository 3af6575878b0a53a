/** Warns about `*` in exact and prefix matches, which compare it literally. */
import { doubtful, type FieldViolation } from './violation.ts';

/** @param correction suggests the match of the same kind for all paths below the given one */
export function literalStarInPath(path: string, correction: (below: string) => string): FieldViolation | undefined {
  const star = path.indexOf('*');
  if (star < 0) return undefined;
  const isLastCharacter = star === path.length - 1;
  const advice = isLastCharacter ? correction(path.slice(0, star) || '/') : 'use a regular expression for "any text"';
  return doubtful(`matches only paths with the character "*", which is no wildcard here: ${advice}`, path);
}
