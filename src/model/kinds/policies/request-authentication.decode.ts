import {
  boolean,
  type Decoder,
  durationAtLeast,
  type FieldError,
  fieldPath,
  list,
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
import { inSchema, someOf } from '../../fields/description.ts';
import { withoutEffectBeside } from '../../fields/effect.ts';
import { limitErrors } from '../../fields/limits.ts';
import { headerNamePattern } from '../../fields/patterns.ts';
import { lineMistake, mistakeAt } from '../field-rules.ts';
import { claimHeaderMistake, headerNameMistake } from '../virtual-service.rules.ts';
import { spaceMistake } from './authorization-policy.rules.ts';
import { scopeAliases, scopeErrors, scopeFields, scopeRules } from './policy-target.decode.ts';
import {
  type JwtRule,
  maxFetchedIssuers,
  maxFetchTimeoutMs,
  mostKeys,
  type RequestAuthentication,
} from './request-authentication.ts';

const headerName = inSchema(
  refine(name, (header, path) => mistakeAt(path, headerNameMistake(header))),
  { pattern: headerNamePattern.replace('^', '^:?') },
);

const claimHeader = refine(name, (header, path) => mistakeAt(path, claimHeaderMistake(header)));

/** Istio allows fewer characters here than in `outputPayloadToHeader`. */
const claimHeaderName = inSchema(
  refine(name, (header, path) =>
    mistakeAt(
      path,
      claimHeaderMistake(header) ??
        (/^[-_A-Za-z0-9]+$/.test(header) ? undefined : 'must have only letters, digits, "-" and "_"'),
    ),
  ),
  { pattern: '^[-_A-Za-z0-9]+$' },
);

const prefixOfValue = refine(text, (prefix, path) => mistakeAt(path, lineMistake(prefix)));

/** Fields of a rule. */
export const jwtRuleFields = restrictions({
  issuer: withDefault(
    refine(text, (issuer, path) => mistakeAt(path, spaceMistake(issuer))),
    '',
  ),
  audiences: optional(list(name)),
  jwksUri: optional(refine(name, (uri, path) => mistakeAt(path, jwksUriMistake(uri)))),
  jwks: optional(refine(name, (keys, path) => mistakeAt(path, jwksMistake(keys)))),
  fromHeaders: optional(
    list(struct<{ name: string; prefix?: string }>({ name: required(headerName), prefix: optional(prefixOfValue) })),
  ),
  fromParams: optional(list(name)),
  fromCookies: optional(list(name)),
  outputPayloadToHeader: optional(claimHeader),
  outputClaimToHeaders: optional(
    list(struct<{ header: string; claim: string }>({ header: required(claimHeaderName), claim: required(name) })),
  ),
  forwardOriginalToken: optional(boolean),
  timeoutMs: withoutEffectBeside(
    optional(durationAtLeast(1), 'timeout'),
    'the keys are in jwks, and not fetched',
    ({ jwks }) => typeof jwks === 'string' && jwks !== '',
  ),
  spaceDelimitedClaims: optional(list(name)),
  presence: optional(oneOf(['OPTIONAL', 'REQUIRED'])),
});

const jwtRule: Decoder<JwtRule> = inSchema(
  refine(
    struct<JwtRule>(
      jwtRuleFields,
      // The API has both spellings.
      { jwks_uri: ['jwksUri', refine(name, (uri, path) => mistakeAt(path, jwksUriMistake(uri)))] },
    ),
    ({ issuer, jwksUri, jwks }, path) => [
      ...mistakeAt(
        fieldPath(path, 'issuer'),
        issuer === '' && jwksUri === undefined ? 'is required (or jwksUri)' : undefined,
      ),
      ...mistakeAt(
        path,
        jwks !== undefined && jwksUri !== undefined ? 'must have only one of jwks and jwksUri' : undefined,
      ),
    ],
  ),
  {
    ...someOf(['issuer', 'jwksUri', 'jwks_uri']),
    not: { required: ['jwks'], ...someOf(['jwksUri', 'jwks_uri']) },
  },
);

/** A RequestAuthentication's `spec`. */
export const requestAuthentication: Decoder<RequestAuthentication> = inSchema(
  refine(
    struct<RequestAuthentication>(
      restrictions({ ...scopeFields, jwtRules: withDefault(list(jwtRule), []) }),
      scopeAliases(),
    ),
    (object, path) => [...scopeErrors(object, path), ...fetchedIssuerErrors(object, path)],
  ),
  { rules: scopeRules },
);

function fetchedIssuerErrors({ jwtRules }: RequestAuthentication, path: string): FieldError[] {
  const fetched = jwtRules.filter(({ jwks }) => jwks === undefined).length;
  return limitErrors(fieldPath(path, 'jwtRules'), fetched, maxFetchedIssuers, 'issuers whose keys are fetched');
}

/** What is allowed and probably not meant. */
export function requestAuthenticationWarnings({ jwtRules }: RequestAuthentication): FieldError[] {
  return jwtRules.flatMap(({ audiences, timeoutMs = 0 }, index) => [
    ...mistakeAt(
      `jwtRules[${index}].audiences`,
      audiences?.length === 0 ? 'has none: tokens for any audience are taken' : undefined,
    ),
    ...mistakeAt(
      `jwtRules[${index}].timeout`,
      timeoutMs > maxFetchTimeoutMs ? `is longer than ${maxFetchTimeoutMs / 1_000}s, which is used instead` : undefined,
    ),
  ]);
}

function jwksUriMistake(uri: string): string | undefined {
  const url = URL.canParse(uri) ? new URL(uri) : undefined;
  const known = (url?.protocol === 'http:' || url?.protocol === 'https:') && url.hostname !== '';
  return known ? undefined : `must be an http:// or https:// URL, not ${JSON.stringify(uri)}`;
}

function jwksMistake(text: string): string | undefined {
  try {
    const { keys } = JSON.parse(text) as { keys?: unknown };
    const isSet =
      Array.isArray(keys) && keys.every((key) => typeof (key as { kty?: unknown } | null)?.kty === 'string');
    if (isSet && keys.length > mostKeys) return `must be at most ${mostKeys} keys, not ${keys.length}`;
    return isSet ? undefined : 'must be a JSON Web Key Set: {"keys": [{"kty": …}]}';
  } catch {
    return 'must be a JSON Web Key Set, and is no JSON';
  }
}
