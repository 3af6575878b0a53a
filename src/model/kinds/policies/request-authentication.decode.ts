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
import { atLeastOneOf, withSchemaValidation } from '../../fields/description.ts';
import { withoutEffectBeside } from '../../fields/effect.ts';
import { limitErrors } from '../../fields/limits.ts';
import { headerNamePattern } from '../../fields/patterns.ts';
import * as violation from '../../fields/violation.ts';
import { lineViolation } from '../field-rules.ts';
import { claimHeaderViolation, headerNameViolation } from '../virtual-service/virtual-service.rules.ts';
import { spaceViolation } from './authorization-policy.rules.ts';
import { scopeAliases, scopeErrors, scopeFields, scopeRules } from './policy-target.decode.ts';
import {
  type JwtRule,
  maxFetchedIssuers,
  maxFetchTimeoutMs,
  maxKeys,
  type RequestAuthentication,
} from './request-authentication.ts';

const headerName = withSchemaValidation(
  refine(name, (header, path) => violation.errorsAt(path, headerNameViolation(header))),
  { pattern: headerNamePattern.replace('^', '^:?') },
);

const claimHeader = refine(name, (header, path) => violation.errorsAt(path, claimHeaderViolation(header)));

/** Istio allows fewer characters here than in `outputPayloadToHeader`. */
const claimHeaderName = withSchemaValidation(
  refine(name, (header, path) =>
    violation.errorsAt(
      path,
      claimHeaderViolation(header) ??
        (/^[-_A-Za-z0-9]+$/.test(header)
          ? undefined
          : violation.mustBe('a header name of letters, digits, "-" and "_"', header)),
    ),
  ),
  { pattern: '^[-_A-Za-z0-9]+$' },
);

const prefixOfValue = refine(text, (prefix, path) => violation.errorsAt(path, lineViolation(prefix)));

export const jwtRuleFields = restrictions({
  issuer: withDefault(
    refine(text, (issuer, path) => violation.errorsAt(path, spaceViolation(issuer))),
    '',
  ),
  audiences: optional(list(name)),
  jwksUri: optional(refine(name, (uri, path) => violation.errorsAt(path, jwksUriViolation(uri)))),
  jwks: optional(refine(name, (keys, path) => violation.errorsAt(path, jwksViolation(keys)))),
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
    'keys in jwks are not fetched',
    ({ jwks }) => typeof jwks === 'string' && jwks !== '',
  ),
  spaceDelimitedClaims: optional(list(name)),
  presence: optional(oneOf(['OPTIONAL', 'REQUIRED'])),
});

const jwtRule: Decoder<JwtRule> = withSchemaValidation(
  refine(
    struct<JwtRule>(
      jwtRuleFields,
      // The API accepts both spellings.
      { jwks_uri: ['jwksUri', refine(name, (uri, path) => violation.errorsAt(path, jwksUriViolation(uri)))] },
    ),
    ({ issuer, jwksUri, jwks }, path) => [
      ...violation.errorsAt(
        fieldPath(path, 'issuer'),
        issuer === '' && jwksUri === undefined ? violation.missingValue('unless jwksUri is set') : undefined,
      ),
      ...violation.errorsAt(
        path,
        jwks !== undefined && jwksUri !== undefined ? violation.exclusiveFields(['jwks', 'jwksUri']) : undefined,
      ),
    ],
  ),
  {
    ...atLeastOneOf(['issuer', 'jwksUri', 'jwks_uri']),
    not: { required: ['jwks'], ...atLeastOneOf(['jwksUri', 'jwks_uri']) },
  },
);

export const requestAuthentication: Decoder<RequestAuthentication> = withSchemaValidation(
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
  const fetchedCount = jwtRules.filter(({ jwks }) => jwks === undefined).length;
  return limitErrors(fieldPath(path, 'jwtRules'), fetchedCount, maxFetchedIssuers, 'issuers whose keys are fetched');
}

export function requestAuthenticationWarnings({ jwtRules }: RequestAuthentication): FieldError[] {
  return jwtRules.flatMap(({ audiences, timeoutMs = 0 }, index) => [
    ...violation.errorsAt(
      `jwtRules[${index}].audiences`,
      audiences?.length === 0
        ? violation.doubtfulValue('the list is empty: tokens for any audience are accepted')
        : undefined,
    ),
    ...violation.errorsAt(
      `jwtRules[${index}].timeout`,
      timeoutMs > maxFetchTimeoutMs
        ? violation.doubtfulValue(`is longer than the limit, and ${maxFetchTimeoutMs / 1_000}s is used instead`)
        : undefined,
    ),
  ]);
}

function jwksUriViolation(uri: string): violation.FieldViolation | undefined {
  const url = URL.canParse(uri) ? new URL(uri) : undefined;
  const isHttpUrl = (url?.protocol === 'http:' || url?.protocol === 'https:') && url.hostname !== '';
  return isHttpUrl ? undefined : violation.mustBe('an http:// or https:// URL', uri);
}

function jwksViolation(text: string): violation.FieldViolation | undefined {
  try {
    const { keys } = JSON.parse(text) as { keys?: unknown };
    const isKeySet =
      Array.isArray(keys) && keys.every((key) => typeof (key as { kty?: unknown } | null)?.kty === 'string');
    if (isKeySet && keys.length > maxKeys) return violation.tooLarge(maxKeys, keys.length, 'keys');
    return isKeySet ? undefined : violation.mustBeHidden('a JSON Web Key Set such as {"keys": [{"kty": "RSA", …}]}');
  } catch {
    return violation.mustBeHidden('a JSON Web Key Set', { hint: 'the value is not JSON' });
  }
}
