import type { FieldError } from '../../fields/decode.ts';
import { isCidr, isDnsLabel, isIpAddress } from '../../fields/names.ts';
import * as violation from '../../fields/violation.ts';
import type { AuthorizationOperation, AuthorizationPolicy, AuthorizationSource } from './authorization-policy.ts';

/** With leading or trailing spaces, a value matches no request: a DENY rule would have no effect. */
export function spaceViolation(text: string): violation.FieldViolation | undefined {
  return text === text.trim() ? undefined : violation.mustBe('without leading or trailing spaces', text);
}

export const withoutSpacePattern = '^\\S(?s:.*\\S)?$';

export function subnetViolation(text: string): violation.FieldViolation | undefined {
  return isIpAddress(text) || isCidr(text)
    ? undefined
    : violation.mustBe('an IP address or a CIDR such as 10.0.0.0/8', text);
}

export function portViolation(text: string): violation.FieldViolation | undefined {
  return /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65535
    ? undefined
    : violation.outOfRange('a port from 1 to 65535', text);
}

/** Accepts `*` only at the beginning or end. */
export function wildcardViolation(text: string): violation.FieldViolation | undefined {
  const textBetweenWildcards =
    text.length > 1 && text.startsWith('*') && text.endsWith('*') ? text : text.replace(/^\*|\*$/, '');
  return textBetweenWildcards.includes('*')
    ? violation.mustBe('a value with * at its beginning or end only', text)
    : undefined;
}

export const wildcardPattern = '^(?:\\*|\\*[^*]*[^*\\s]|[^*\\s][^*]*\\*|[^*\\s](?:[^*]*[^*\\s])?)$';

/** Rejects doubtful path templates, because Envoy 1.40 crashes on a template that it cannot parse. */
export function pathViolation(text: string): violation.FieldViolation | undefined {
  if (!text.includes('{')) return wildcardViolation(text);
  if (!text.startsWith('/')) return violation.mustBe('a path that begins with /', text);
  const segments = text.slice(1).replace(/\/$/, '').split('/');
  for (const segment of segments) {
    const isTemplate = segment === '{*}' || segment === '{**}';
    if (!isTemplate && /[{}*]/.test(segment)) {
      return violation.mustBe('a path with {*} and {**} as whole segments and no other *', text);
    }
    if (!isTemplate && !/^[\w.~%!$&'()+,;:@=-]+$/.test(segment)) {
      return violation.mustBe('a path whose other characters are percent-encoded', text);
    }
  }
  const doubleStarSegments = segments.filter((segment) => segment === '{**}').length;
  const isDoubleStarLast = text.lastIndexOf('{*}') < text.lastIndexOf('{**}');
  return doubleStarSegments > 1 || (doubleStarSegments === 1 && !isDoubleStarLast)
    ? violation.mustBe('a path with one {**} at most, and no {*} after it', text)
    : undefined;
}

export function serviceAccountViolation(text: string): violation.FieldViolation | undefined {
  const accountParts = text.split('/');
  return accountParts.length <= 2 &&
    accountParts.every((accountPart) => accountPart === '*' || isDnsLabel(accountPart.replaceAll('.', '-')))
    ? undefined
    : violation.mustBe('a service account or NAMESPACE/SERVICE-ACCOUNT', text);
}

type ValueCheck = (text: string) => violation.FieldViolation | undefined;

const acceptAnyValue: ValueCheck = () => undefined;

const conditionKeys: readonly (readonly [RegExp, ValueCheck])[] = [
  [/^request\.headers\[[:\w!#$%&'*+.^`|~-]+\]$/, acceptAnyValue],
  [/^(?:source|remote|destination)\.ip$/, subnetViolation],
  [/^destination\.port$/, portViolation],
  [/^source\.(?:namespace|principal|serviceAccount|trustDomain)$/, acceptAnyValue],
  [/^request\.auth\.(?:principal|audiences|presenter)$/, acceptAnyValue],
  [/^request\.auth\.claims(?:\[[^[\]]+\])+$/, acceptAnyValue],
  [/^connection\.sni$/, acceptAnyValue],
  [/^experimental\.envoy\.filters\.[^[\]]+\[[^[\]]+\]$/, acceptAnyValue],
];

export const conditionKeyPattern = conditionKeys.map(([{ source }]) => source).join('|');

export function conditionValues(key: string): ValueCheck | undefined {
  return conditionKeys.find(([pattern]) => pattern.test(key))?.[1];
}

const identityFields = [
  ...['principals', 'notPrincipals', 'requestPrincipals', 'notRequestPrincipals', 'namespaces', 'notNamespaces'],
  ...['serviceAccounts', 'notServiceAccounts', 'trustDomains', 'notTrustDomains'],
] as readonly (keyof AuthorizationSource)[];

/** Rejects identities in CUSTOM rules, because the external authorizer runs before authentication. */
export function customErrors({ action, rules }: AuthorizationPolicy): FieldError[] {
  if (action !== 'CUSTOM') return [];
  return rules.flatMap((rule, index) => [
    ...(rule.from ?? []).flatMap((source, sourceIndex) =>
      identityFields
        .filter((field) => source[field] !== undefined)
        .map((field) =>
          violation.fieldError(
            `rules[${index}].from[${sourceIndex}].source.${field}`,
            violation.excludedField('with action CUSTOM'),
          ),
        ),
    ),
    ...(rule.when ?? []).flatMap(({ key }, conditionIndex) =>
      /^request\.auth\.|^source\.(?:namespace|principal|serviceAccount|trustDomain)$/.test(key)
        ? [
            violation.fieldError(
              `rules[${index}].when[${conditionIndex}].key`,
              violation.disallowedValue(`must not be ${key} with action CUSTOM`, key),
            ),
          ]
        : [],
    ),
  ]);
}

const methods: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'CONNECT',
  'OPTIONS',
  'TRACE',
]);

type SuspicionCheck = (value: string) => violation.FieldViolation | undefined;

/** Principals have the form `TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT`; principals.ts adds the SPIFFE scheme. */
const principalSuspicion: SuspicionCheck = (value) => {
  if (value.startsWith('*')) return undefined;
  if (/^spiffe:/i.test(value)) {
    return violation.doubtfulValue(
      `matches no identity: remove the scheme, ${JSON.stringify(value.replace(/^spiffe:\/*/i, ''))}`,
      value,
    );
  }
  return value.includes('/') || value.endsWith('*')
    ? undefined
    : violation.doubtfulValue(
        `matches no identity: expected TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT, got ${JSON.stringify(value)}`,
        value,
      );
};

/** Kubernetes namespaces are RFC 1123 labels. */
const namespaceSuspicion: SuspicionCheck = (value) =>
  /^[-a-z0-9*]+$/.test(value)
    ? undefined
    : violation.doubtfulValue('matches no namespace: names have only lower-case letters, digits and "-"', value);

const trustDomainSuspicion: SuspicionCheck = (value) =>
  value.includes('/')
    ? violation.doubtfulValue(
        `matches no trust domain: expected a name without slash, got ${JSON.stringify(value)}`,
        value,
      )
    : undefined;

const methodSuspicion: SuspicionCheck = (value) =>
  !methods.has(value) && methods.has(value.toUpperCase())
    ? violation.doubtfulValue(`matches no method: write ${value.toUpperCase()}`, value)
    : undefined;

/** Paths are compared without query and fragment. */
const pathSuspicion: SuspicionCheck = (value) => {
  if (!value.startsWith('/') && !value.startsWith('*')) {
    return violation.doubtfulValue(
      `matches no path: expected a path that begins with /, got ${JSON.stringify(value)}`,
      value,
    );
  }
  return /[?#]/.test(value)
    ? violation.doubtfulValue('matches no path: query and fragment are removed before the comparison', value)
    : undefined;
};

const hostSuspicion: SuspicionCheck = (value) =>
  value.includes('/')
    ? violation.doubtfulValue(
        `matches no host: expected a host without scheme and path, got ${JSON.stringify(value)}`,
        value,
      )
    : undefined;

const sourceSuspicions: readonly (readonly [keyof AuthorizationSource, SuspicionCheck])[] = [
  ['principals', principalSuspicion],
  ['notPrincipals', principalSuspicion],
  ['namespaces', namespaceSuspicion],
  ['notNamespaces', namespaceSuspicion],
  ['trustDomains', trustDomainSuspicion],
  ['notTrustDomains', trustDomainSuspicion],
];

const operationSuspicions: readonly (readonly [keyof AuthorizationOperation, SuspicionCheck])[] = [
  ['methods', methodSuspicion],
  ['notMethods', methodSuspicion],
  ['paths', pathSuspicion],
  ['notPaths', pathSuspicion],
  ['hosts', hostSuspicion],
  ['notHosts', hostSuspicion],
];

const conditionSuspicions: ReadonlyMap<string, SuspicionCheck> = new Map([
  ['source.principal', principalSuspicion],
  ['source.namespace', namespaceSuspicion],
  ['source.trustDomain', trustDomainSuspicion],
]);

/** Warns of values that no request has: with them, an ALLOW rule allows nothing and a DENY rule denies nothing. */
function unmatchableWarnings<T extends object>(
  value: T,
  path: string,
  suspicions: readonly (readonly [keyof T & string, SuspicionCheck])[],
): FieldError[] {
  return suspicions.flatMap(([field, suspicion]) =>
    ((value[field] ?? []) as readonly string[]).flatMap((text, index) => {
      return violation.errorsAt(`${path}.${field}[${index}]`, suspicion(text));
    }),
  );
}

export function authorizationPolicyWarnings(policy: AuthorizationPolicy): FieldError[] {
  const unmatchableWarningList = policy.rules.flatMap(({ from = [], to = [], when = [] }, index) => [
    ...from.flatMap((source, sourceIndex) =>
      unmatchableWarnings(source, `rules[${index}].from[${sourceIndex}].source`, sourceSuspicions),
    ),
    ...to.flatMap((operation, operationIndex) =>
      unmatchableWarnings(operation, `rules[${index}].to[${operationIndex}].operation`, operationSuspicions),
    ),
    ...when.flatMap((condition, conditionIndex) => {
      const suspicion = conditionSuspicions.get(condition.key);
      if (suspicion === undefined) return [];
      return unmatchableWarnings(condition, `rules[${index}].when[${conditionIndex}]`, [
        ['values', suspicion],
        ['notValues', suspicion],
      ]);
    }),
  ]);
  return [...unmatchableWarningList, ...reachWarnings(policy)];
}

function reachWarnings({ action, rules }: AuthorizationPolicy): FieldError[] {
  if (action === 'ALLOW' && rules.length === 0) {
    return [violation.fieldError('rules', violation.doubtfulValue('the list is empty: the policy allows nothing'))];
  }
  if (action !== 'DENY') return [];
  return rules.flatMap((rule, index) => {
    const isEmpty = rule.from === undefined && rule.to === undefined && rule.when === undefined;
    return isEmpty
      ? [
          violation.fieldError(
            `rules[${index}]`,
            violation.doubtfulValue('matches every request: the policy denies everything'),
          ),
        ]
      : [];
  });
}
