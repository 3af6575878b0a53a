import {
  type Decoder,
  type FieldError,
  name,
  oneOf,
  optional,
  refine,
  required,
  restrictions,
  struct,
  text,
  withDefault,
} from '../../fields/decode.ts';
import { literalStarInPath } from '../../fields/literal-star.ts';
import { re2Violation } from '../../fields/re2.ts';
import * as violation from '../../fields/violation.ts';
import { duplicateErrors, lineViolation } from '../field-rules.ts';
import { listOf } from './fields.ts';
import type { HttpRouteMatch, PathMatch, ValueMatchByName } from './http-route.ts';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'] as const;

/** Accepts a token (RFC 9110 §5.6.2). */
export const headerName: Decoder<string> = refine(name, (value, path) =>
  violation.errorsAt(
    path,
    value.length <= 256 && /^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$/.test(value)
      ? undefined
      : violation.mustBe('a header name', value),
  ),
);

/** Character sequences that no normalized request path contains. */
const impossibleSequences = ['//', '/./', '/../', '%2f', '%2F', '#'];

export function pathViolation(value: string): violation.FieldViolation | undefined {
  if (value.length > 1024) return violation.tooLarge(1024, value.length);
  if (!value.startsWith('/')) return violation.mustBe('a path that begins with /', value);
  const forbiddenPart = impossibleSequences.find((candidate) => value.includes(candidate));
  if (forbiddenPart !== undefined)
    return violation.disallowedValue(`must not contain ${JSON.stringify(forbiddenPart)}`, value);
  if (/\/\.\.?$/.test(value)) return violation.disallowedValue('must not end with "/." or "/.."', value);
  return /^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})+$/.test(value)
    ? undefined
    : violation.mustBe('a path whose other characters are percent-encoded', value);
}

const path: Decoder<PathMatch> = refine(
  struct<PathMatch>(
    restrictions({
      type: withDefault(oneOf(['Exact', 'PathPrefix', 'RegularExpression']), 'PathPrefix'),
      value: withDefault(text, '/'),
    }),
  ),
  ({ type, value }, fieldAt) =>
    violation.errorsAt(`${fieldAt}.value`, type === 'RegularExpression' ? re2Violation(value) : pathViolation(value)),
);

function valueMatch(nameDecoder: Decoder<string>, maxCharacters: number): Decoder<ValueMatchByName> {
  return refine(
    struct<ValueMatchByName>({
      type: withDefault(oneOf(['Exact', 'RegularExpression']), 'Exact'),
      name: required(nameDecoder),
      value: required(name),
    }),
    ({ type, value }, fieldAt): FieldError[] => {
      const lengthViolation =
        value.length > maxCharacters ? violation.tooLarge(maxCharacters, value.length) : undefined;
      return violation.errorsAt(
        `${fieldAt}.value`,
        lengthViolation ?? (type === 'RegularExpression' ? re2Violation(value) : lineViolation(value)),
      );
    },
  );
}

function withUniqueNames(matches: Decoder<readonly ValueMatchByName[]>): Decoder<readonly ValueMatchByName[]> {
  return refine(matches, (items, fieldAt) =>
    duplicateErrors(
      items,
      (item) => item.name,
      (index) => `${fieldAt}[${index}].name`,
      'name',
    ),
  );
}

const everyPath: PathMatch = { type: 'PathPrefix', value: '/' };
export const everyRequest: HttpRouteMatch = { path: everyPath, headers: [], queryParams: [] };

export const headerMatches = withDefault(withUniqueNames(listOf(valueMatch(headerName, 4096), 0, 16)), []);

export const httpRouteMatch: Decoder<HttpRouteMatch> = struct<HttpRouteMatch>(
  restrictions({
    path: withDefault(path, everyPath),
    headers: headerMatches,
    queryParams: withDefault(withUniqueNames(listOf(valueMatch(headerName, 1024), 0, 16)), []),
    method: optional(oneOf(methods)),
  }),
);

export function literalStars(matches: readonly HttpRouteMatch[], fieldAt: string): FieldError[] {
  return matches.flatMap(({ path: { type, value } }, index) =>
    type === 'RegularExpression'
      ? []
      : violation.errorsAt(
          `${fieldAt}.matches[${index}].path.value`,
          literalStarInPath(
            value,
            (prefix) => `write type: PathPrefix, value: ${prefix.replace(/(?<=.)\/$/, '')} for everything below it`,
          ),
        ),
  );
}
