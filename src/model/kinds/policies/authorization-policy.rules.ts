/** What a text of an AuthorizationPolicy may be (§4.5). */
import type { FieldError } from '../../fields/decode.ts';
import { isCidr, isDnsLabel, isIpAddress } from '../../fields/names.ts';
import type { AuthorizationOperation, AuthorizationPolicy, AuthorizationSource } from './authorization-policy.ts';

/** What begins or ends so is equal to nothing that a request or a connection has: a rule that denies would not. */
export function spaceMistake(text: string): string | undefined {
  return text === text.trim() ? undefined : `must have no space around it, not ${JSON.stringify(text)}`;
}

export const withoutSpacePattern = '^\\S(?s:.*\\S)?$';

export function subnetMistake(text: string): string | undefined {
  return isIpAddress(text) || isCidr(text)
    ? undefined
    : `must be an IP address or a range such as 10.0.0.0/8, not ${JSON.stringify(text)}`;
}

export function portMistake(text: string): string | undefined {
  return /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65535
    ? undefined
    : `must be a port from 1 to 65535, not ${JSON.stringify(text)}`;
}

/** A `*` stands at the beginning or at the end. */
export function wildcardMistake(text: string): string | undefined {
  const middle = text.length > 1 && text.startsWith('*') && text.endsWith('*') ? text : text.replace(/^\*|\*$/, '');
  return middle.includes('*') ? `must have * at one end only, not ${JSON.stringify(text)}` : undefined;
}

/** The same, as a schema can say it. */
export const wildcardPattern = '^(?:\\*|\\*[^*]*[^*\\s]|[^*\\s][^*]*\\*|[^*\\s](?:[^*]*[^*\\s])?)$';

/** Envoy 1.40 does not refuse a template that it cannot read: it ends. So nothing that is not sure to be read may pass. */
export function pathMistake(text: string): string | undefined {
  if (!text.includes('{')) return wildcardMistake(text);
  if (!text.startsWith('/')) return `must begin with /, not ${JSON.stringify(text)}`;
  // A slash at the end is no segment.
  const segments = text.slice(1).replace(/\/$/, '').split('/');
  for (const segment of segments) {
    const isTemplate = segment === '{*}' || segment === '{**}';
    if (!isTemplate && /[{}*]/.test(segment)) {
      return `must have {*} and {**} as whole segments, and no * beside them, not ${JSON.stringify(text)}`;
    }
    if (!isTemplate && !/^[\w.~%!$&'()+,;:@=-]+$/.test(segment)) {
      return `must have segments of the characters of a path, percent-encoded where they are not, not ${JSON.stringify(text)}`;
    }
  }
  const severals = segments.filter((segment) => segment === '{**}').length;
  const isLast = text.lastIndexOf('{*}') < text.lastIndexOf('{**}');
  return severals > 1 || (severals === 1 && !isLast)
    ? `must have {**} once, and no {*} after it, not ${JSON.stringify(text)}`
    : undefined;
}

export function serviceAccountMistake(text: string): string | undefined {
  const parts = text.split('/');
  return parts.length <= 2 && parts.every((part) => part === '*' || isDnsLabel(part.replaceAll('.', '-')))
    ? undefined
    : `must be a service account or namespace/service account, not ${JSON.stringify(text)}`;
}

type ValueMistake = (text: string) => string | undefined;

const anything: ValueMistake = () => undefined;

/** Keys of conditions, and what their values may be. */
const conditionKeys: readonly (readonly [RegExp, ValueMistake])[] = [
  [/^request\.headers\[[:\w!#$%&'*+.^`|~-]+\]$/, anything],
  [/^(?:source|remote|destination)\.ip$/, subnetMistake],
  [/^destination\.port$/, portMistake],
  [/^source\.(?:namespace|principal|serviceAccount|trustDomain)$/, anything],
  [/^request\.auth\.(?:principal|audiences|presenter)$/, anything],
  [/^request\.auth\.claims(?:\[[^[\]]+\])+$/, anything],
  [/^connection\.sni$/, anything],
  [/^experimental\.envoy\.filters\.[^[\]]+\[[^[\]]+\]$/, anything],
];

export const conditionKeyPattern = conditionKeys.map(([{ source }]) => source).join('|');

/** How values of a key are checked; undefined when there is no such key. */
export function conditionValues(key: string): ValueMistake | undefined {
  return conditionKeys.find(([pattern]) => pattern.test(key))?.[1];
}

const ofIdentities = [
  ...['principals', 'notPrincipals', 'requestPrincipals', 'notRequestPrincipals', 'namespaces', 'notNamespaces'],
  ...['serviceAccounts', 'notServiceAccounts', 'trustDomains', 'notTrustDomains'],
] as readonly (keyof AuthorizationSource)[];

/** An external authorizer is asked before identities are checked. */
export function customErrors({ action, rules }: AuthorizationPolicy): FieldError[] {
  if (action !== 'CUSTOM') return [];
  return rules.flatMap((rule, index) => [
    ...(rule.from ?? []).flatMap((source, at) =>
      ofIdentities
        .filter((field) => source[field] !== undefined)
        .map((field) => ({
          path: `rules[${index}].from[${at}].source.${field}`,
          message: 'must not be given with action CUSTOM',
        })),
    ),
    ...(rule.when ?? []).flatMap(({ key }, at) =>
      /^request\.auth\.|^source\.(?:namespace|principal|serviceAccount|trustDomain)$/.test(key)
        ? [{ path: `rules[${index}].when[${at}].key`, message: `must not be ${key} with action CUSTOM` }]
        : [],
    ),
  ]);
}

/** Methods that are compared with regard to case. */
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

type Suspicion = (value: string) => string | undefined;

/** Identities are `TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT`; the scheme is put before them (principals.ts). */
const ofPrincipal: Suspicion = (value) => {
  if (value.startsWith('*')) return undefined;
  if (/^spiffe:/i.test(value)) {
    return `is no identity: write it without spiffe://, as ${JSON.stringify(value.replace(/^spiffe:\/*/i, ''))}`;
  }
  return value.includes('/') || value.endsWith('*')
    ? undefined
    : `is no identity: they are TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT, ${JSON.stringify(value)} is not`;
};

/** Kubernetes has no other namespaces (RFC 1123 labels). */
const ofNamespace: Suspicion = (value) =>
  /^[-a-z0-9*]+$/.test(value) ? undefined : 'is no namespace: they have lower-case letters, digits and "-" only';

/** The part of an identity before its first slash, after the scheme. */
const ofTrustDomain: Suspicion = (value) =>
  value.includes('/') ? `is no trust domain: it has no slash, ${JSON.stringify(value)} does` : undefined;

const ofMethod: Suspicion = (value) =>
  !methods.has(value) && methods.has(value.toUpperCase())
    ? `is no method: methods are written ${value.toUpperCase()}`
    : undefined;

/** Compared without what comes after them (spec/discovery.md §8.10). */
const ofPath: Suspicion = (value) => {
  if (!value.startsWith('/') && !value.startsWith('*')) {
    return `is no path: all of them begin with /, ${JSON.stringify(value)} does not`;
  }
  return /[?#]/.test(value) ? 'is no path: they are compared without the query, and without ? and #' : undefined;
};

const ofHost: Suspicion = (value) =>
  value.includes('/') ? `is no host: it has no scheme and no path, ${JSON.stringify(value)} has` : undefined;

const ofSources: readonly (readonly [keyof AuthorizationSource, Suspicion])[] = [
  ['principals', ofPrincipal],
  ['notPrincipals', ofPrincipal],
  ['namespaces', ofNamespace],
  ['notNamespaces', ofNamespace],
  ['trustDomains', ofTrustDomain],
  ['notTrustDomains', ofTrustDomain],
];

const ofOperations: readonly (readonly [keyof AuthorizationOperation, Suspicion])[] = [
  ['methods', ofMethod],
  ['notMethods', ofMethod],
  ['paths', ofPath],
  ['notPaths', ofPath],
  ['hosts', ofHost],
  ['notHosts', ofHost],
];

const ofConditions: ReadonlyMap<string, Suspicion> = new Map([
  ['source.principal', ofPrincipal],
  ['source.namespace', ofNamespace],
  ['source.trustDomain', ofTrustDomain],
]);

/** Values that no request has: a rule that allows lets nobody in by them, and one that denies keeps nobody out. */
function unheardWarnings<T extends object>(
  value: T,
  path: string,
  suspicions: readonly (readonly [keyof T & string, Suspicion])[],
): FieldError[] {
  return suspicions.flatMap(([field, suspicion]) =>
    ((value[field] ?? []) as readonly string[]).flatMap((text, index) => {
      const message = suspicion(text);
      return message === undefined ? [] : [{ path: `${path}.${field}[${index}]`, message }];
    }),
  );
}

/** What is allowed and probably not meant. */
export function authorizationPolicyWarnings(policy: AuthorizationPolicy): FieldError[] {
  const unheard = policy.rules.flatMap(({ from = [], to = [], when = [] }, index) => [
    ...from.flatMap((source, at) => unheardWarnings(source, `rules[${index}].from[${at}].source`, ofSources)),
    ...to.flatMap((operation, at) => unheardWarnings(operation, `rules[${index}].to[${at}].operation`, ofOperations)),
    ...when.flatMap((condition, at) => {
      const suspicion = ofConditions.get(condition.key);
      if (suspicion === undefined) return [];
      return unheardWarnings(condition, `rules[${index}].when[${at}]`, [
        ['values', suspicion],
        ['notValues', suspicion],
      ]);
    }),
  ]);
  return [...unheard, ...reachWarnings(policy)];
}

function reachWarnings({ action, rules }: AuthorizationPolicy): FieldError[] {
  if (action === 'ALLOW' && rules.length === 0) {
    return [{ path: 'rules', message: 'are none: nothing passes but what another policy allows' }];
  }
  if (action !== 'DENY') return [];
  return rules.flatMap((rule, index) => {
    const isEmpty = rule.from === undefined && rule.to === undefined && rule.when === undefined;
    return isEmpty ? [{ path: `rules[${index}]`, message: 'matches every request: the policy denies everything' }] : [];
  });
}
