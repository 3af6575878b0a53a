import * as E from 'fp-ts/lib/Either.js';
import { type Decoder, fail, fieldPath, isObject, optional, refine, struct, text } from '../decode.ts';
import { re2Mistake } from '../re2.ts';
import type { StringMatch, ValueMatch } from './string-match.ts';

interface WrittenMatch {
  readonly exact?: string;
  readonly prefix?: string;
  readonly regex?: string;
}

const written: Decoder<WrittenMatch> = refine(
  struct<WrittenMatch>({ exact: optional(text), prefix: optional(text), regex: optional(text) }),
  (match, path) => {
    if (Object.keys(match).length > 1) return [{ path, message: 'must have only one of exact, prefix and regex' }];
    const mistake = match.regex === undefined || match.regex === '*' ? undefined : re2Mistake(match.regex);
    return mistake === undefined ? [] : [{ path: fieldPath(path, 'regex'), message: mistake }];
  },
);

/** `{exact}`, `{prefix}` or `{regex}`. */
export const stringMatch: Decoder<StringMatch> = (value, path) => {
  if (isObject(value) && Object.keys(value).length === 0) return fail(path, 'must have exact, prefix or regex');
  // `*` alone is no expression; only headers and the like give it a meaning.
  if (isObject(value) && value.regex === '*') return fail(fieldPath(path, 'regex'), 'must be an RE2 expression, not *');
  return E.map((match: WrittenMatch) => match as StringMatch)(written(value, path));
};

/** A match on a header or parameter: empty, or regex `*`, asks for its presence (§8.6). */
export const valueMatch: Decoder<ValueMatch> = (value, path) => {
  return E.map((match: WrittenMatch): ValueMatch => {
    return Object.keys(match).length === 0 || match.regex === '*' ? { present: true } : (match as StringMatch);
  })(written(value, path));
};
