/** Warns about `*` in exact and prefix matches, which compare it literally. */
import { doubtfulValue, type FieldViolation } from './violation.ts';

/** @param correctionFor suggests the match of the same kind for all paths below the given one */
export function literalStarInPath(
  path: string,
  correctionFor: (parentPath: string) => string,
): FieldViolation | undefined {
  const star = path.indexOf('*');
  if (star < 0) return undefined;
  const isLastCharacter = star === path.length - 1;
  const advice = isLastCharacter
    ? correctionFor(path.slice(0, star) || '/')
    : 'use a regular expression for "any text"';
  return doubtfulValue(`matches only paths with the character "*", which is no wildcard here: ${advice}`, path);
}
