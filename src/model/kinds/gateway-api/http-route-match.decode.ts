/** Which requests a rule of an HTTPRoute is for: decoding, with what the API's CRD would refuse. */
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
import { re2Mistake } from '../../fields/re2.ts';
import { mistakeAt, repetitions } from '../field-rules.ts';
import { listOf } from './fields.ts';
import type { HttpRouteMatch, PathMatch, ValueMatchByName } from './http-route.ts';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'] as const;

/** RFC 9110 §5.6.2: a token. */
export const headerName: Decoder<string> = refine(name, (value, path) =>
  mistakeAt(
    path,
    value.length <= 256 && /^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$/.test(value)
      ? undefined
      : `must be the name of a header, not ${JSON.stringify(value)}`,
  ),
);

/** What a path must not have, for it would never be one that is asked for. */
const impossible = ['//', '/./', '/../', '%2f', '%2F', '#'];

/** What is wrong with a path that is matched as it is. */
export function pathMistake(value: string): string | undefined {
  if (value.length > 1024) return `must have at most 1024 characters, not ${value.length}`;
  if (!value.startsWith('/')) return `must start with "/", not be ${JSON.stringify(value)}`;
  const part = impossible.find((one) => value.includes(one));
  if (part !== undefined) return `must not have ${JSON.stringify(part)} in it`;
  if (/\/\.\.?$/.test(value)) return 'must not end with "/." or "/.."';
  return /^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})+$/.test(value)
    ? undefined
    : `must have only characters of paths, others as %XX, not be ${JSON.stringify(value)}`;
}

const path: Decoder<PathMatch> = refine(
  struct<PathMatch>(
    restrictions({
      type: withDefault(oneOf(['Exact', 'PathPrefix', 'RegularExpression']), 'PathPrefix'),
      value: withDefault(text, '/'),
    }),
  ),
  ({ type, value }, at) =>
    mistakeAt(`${at}.value`, type === 'RegularExpression' ? re2Mistake(value) : pathMistake(value)),
);

function valueMatch(nameDecoder: Decoder<string>, mostCharacters: number): Decoder<ValueMatchByName> {
  return refine(
    struct<ValueMatchByName>({
      type: withDefault(oneOf(['Exact', 'RegularExpression']), 'Exact'),
      name: required(nameDecoder),
      value: required(name),
    }),
    ({ type, value }, at): FieldError[] => {
      const tooLong = value.length > mostCharacters ? `must have at most ${mostCharacters} characters` : undefined;
      return mistakeAt(
        `${at}.value`,
        tooLong ?? (type === 'RegularExpression' ? re2Mistake(value) : lineMistake(value)),
      );
    },
  );
}

/** Envoy refuses a route with a header's value of another kind. */
function lineMistake(value: string): string | undefined {
  return /[\r\n\0]/.test(value) ? 'must be one line' : undefined;
}

function byName(matches: Decoder<readonly ValueMatchByName[]>): Decoder<readonly ValueMatchByName[]> {
  return refine(matches, (items, at) =>
    repetitions(
      items,
      (item) => item.name,
      (index) => `${at}[${index}].name`,
      'name',
    ),
  );
}

const everyPath: PathMatch = { type: 'PathPrefix', value: '/' };
/** What a rule without matches is for. */
export const everyRequest: HttpRouteMatch = { path: everyPath, headers: [], queryParams: [] };

export const headerMatches = withDefault(byName(listOf(valueMatch(headerName, 4096), 0, 16)), []);

export const httpRouteMatch: Decoder<HttpRouteMatch> = struct<HttpRouteMatch>(
  restrictions({
    path: withDefault(path, everyPath),
    headers: headerMatches,
    queryParams: withDefault(byName(listOf(valueMatch(headerName, 1024), 0, 16)), []),
    method: optional(oneOf(methods)),
  }),
);
