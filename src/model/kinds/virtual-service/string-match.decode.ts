import * as E from 'fp-ts/lib/Either.js';
import { isObject } from '../../../runtime/json-object.ts';
import {
  type Decoded,
  type Decoder,
  type FieldError,
  fail,
  fieldPath,
  optional,
  refine,
  restrictions,
  struct,
  text,
} from '../../fields/decode.ts';
import { withDescription } from '../../fields/description.ts';
import { re2Violation } from '../../fields/re2.ts';
import * as violation from '../../fields/violation.ts';
import type { StringMatch, ValueMatch } from './string-match.ts';

interface WrittenMatch {
  readonly exact?: string;
  readonly prefix?: string;
  readonly regex?: string;
}

const writtenMatch: Decoder<WrittenMatch> = refine(
  struct<WrittenMatch>(restrictions({ exact: optional(text), prefix: optional(text), regex: optional(text) })),
  (match, path) => {
    if (Object.keys(match).length > 1)
      return [violation.fieldError(path, violation.exclusiveFields(['exact', 'prefix', 'regex']))];
    const regexError = match.regex === undefined || match.regex === '*' ? undefined : re2Violation(match.regex);
    return regexError === undefined ? [] : [violation.fieldError(fieldPath(path, 'regex'), regexError)];
  },
);

/** Envoy rejects all routes for an empty prefix of a header value. */
function emptyPrefix(match: object, path: string): FieldError[] {
  const isEmpty = 'prefix' in match && match.prefix === '';
  return isEmpty
    ? [violation.fieldError(fieldPath(path, 'prefix'), violation.emptyValue('use {} to match presence'))]
    : [];
}

/** A StringMatch without a key would match everything. */
const nonEmptyMatch = refine(writtenMatch, (match, path) =>
  Object.keys(match).length === 0
    ? [violation.fieldError(path, violation.missingAny(['exact', 'prefix', 'regex']))]
    : [],
);

export const stringMatch: Decoder<StringMatch> = withDescription(
  (value: unknown, path: string): Decoded<StringMatch> => {
    // `*` is not a regular expression; only headers and parameters accept it.
    if (isObject(value) && value.regex === '*')
      return fail(fieldPath(path, 'regex'), violation.mustBe('an RE2 expression', '*'));
    return E.map((match: WrittenMatch) => match as StringMatch)(nonEmptyMatch(value, path));
  },
  { type: 'narrowed', decoder: writtenMatch, validation: { minProperties: 1, maxProperties: 1 } },
);

export const headerMatch: Decoder<StringMatch> = refine(stringMatch, (match, path) =>
  'prefix' in match && match.prefix === ''
    ? [violation.fieldError(fieldPath(path, 'prefix'), violation.emptyValue('remove the match to match all'))]
    : [],
);

/** An empty match, or the regex `*`, matches the presence of a header or parameter. */
export const valueMatch: Decoder<ValueMatch> = withDescription(
  (value: unknown, path: string): Decoded<ValueMatch> => {
    return E.map((match: WrittenMatch): ValueMatch => {
      return Object.keys(match).length === 0 || match.regex === '*' ? { present: true } : (match as StringMatch);
    })(refine(writtenMatch, emptyPrefix)(value, path));
  },
  { type: 'narrowed', decoder: writtenMatch, validation: { maxProperties: 1 } },
);
