/**
 * Fields that restrict access, with the effect of each unusual form. None may allow more than intended: it is rejected (and `validate` reports it),
 * or it deliberately matches no client or every client.
 */

/** A request to the gateway or the sidecar that the object selects. */
export interface RestrictedRequest {
  readonly path?: string;
  readonly method?: string;
  readonly host?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Claims of a token from the issuer in the table's rules. */
  readonly token?: Readonly<Record<string, unknown>>;
}

export type RestrictionOutcome =
  /** Part of the errors as `codedField`. */
  | { readonly refused: string }
  /** Allowed and denied requests. */
  | {
      readonly lets: readonly RestrictedRequest[];
      readonly keepsOut: readonly RestrictedRequest[];
      readonly warned?: string;
    };

export interface RestrictionRow {
  readonly kind: 'AuthorizationPolicy' | 'RequestAuthentication' | 'PeerAuthentication';
  readonly field: string;
  /** Form in the object: `empty list`, `null`, `odd case`. */
  readonly written: string;
  readonly spec: Readonly<Record<string, unknown>>;
  readonly outcome: RestrictionOutcome;
}

/** Placeholder in a row of RequestAuthentication for the keys of the issuer. */
export const issuersKeys = 'KEYS';
export const issuer = 'https://id.test';

const anyRequest: RestrictedRequest = {};
const allowsNone = (warned?: string): RestrictionOutcome => ({
  lets: [],
  keepsOut: [anyRequest],
  ...(warned && { warned }),
});
const allowsAll: RestrictionOutcome = { lets: [anyRequest], keepsOut: [] };
const refusedOutcome = (message: string): RestrictionOutcome => ({ refused: message });

const rule = (of: object): Readonly<Record<string, unknown>> => ({ rules: [of] });
const to = (operation: unknown): object => ({ to: [{ operation }] });
const from = (source: unknown): object => ({ from: [{ source }] });
const when = (condition: unknown): object => ({ when: [condition] });

type Written = readonly [written: string, spec: Readonly<Record<string, unknown>>, outcome: RestrictionOutcome];

const rowsOfPolicy = (field: string, ...rows: readonly Written[]): RestrictionRow[] =>
  rows.map(([written, spec, outcome]) => ({ kind: 'AuthorizationPolicy', field, written, spec, outcome }));

/**
 * String lists, which share their unusual forms. `beside` is a valid additional field, so that the object is not empty.
 */
const lists: readonly { field: string; place: (value: object) => object; beside: object; good: string }[] = [
  ...['principals', 'notPrincipals', 'requestPrincipals', 'notRequestPrincipals', 'namespaces', 'notNamespaces'].map(
    (field) => ({ field, place: from, beside: { ipBlocks: ['127.0.0.1'] }, good: 'a' }),
  ),
  ...['trustDomains', 'notTrustDomains', 'notServiceAccounts'].map((field) => ({
    ...{ field, place: from, beside: { ipBlocks: ['127.0.0.1'] }, good: 'a' },
  })),
  { field: 'serviceAccounts', place: from, beside: { remoteIpBlocks: ['127.0.0.1'] }, good: 'a' },
  ...['ipBlocks', 'notIpBlocks', 'remoteIpBlocks', 'notRemoteIpBlocks'].map((field) => ({
    ...{ field, place: from, beside: { notNamespaces: ['a'] }, good: '10.0.0.0/8' },
  })),
  ...['hosts', 'notHosts', 'methods', 'notMethods', 'paths', 'notPaths'].map((field) => ({
    ...{ field, place: to, beside: { ports: ['80'] }, good: field === 'paths' || field === 'notPaths' ? '/a' : 'a' },
  })),
  ...['ports', 'notPorts'].map((field) => ({ field, place: to, beside: { methods: ['GET'] }, good: '80' })),
];

const isPort = (field: string): boolean => /ports$/i.test(field);

const malformedLists = (validItem: string, field: string): readonly (readonly [string, object, string])[] => [
  ['empty list', { [field]: [] }, 'FIELD_EMPTY'],
  ['null', { [field]: null }, 'FIELD_EMPTY'],
  ['empty text in it', { [field]: [''] }, 'FIELD_EMPTY'],
  ['null in it', { [field]: [null] }, 'FIELD_TYPE_INVALID got'],
  ['one text, no list', { [field]: validItem }, 'FIELD_TYPE_INVALID got'],
  ['number in it', { [field]: [5] }, 'FIELD_TYPE_INVALID got'],
  ['capital letter in the name', { [`${field[0]!.toUpperCase()}${field.slice(1)}`]: [validItem] }, `near ${field}`],
  ['misspelt name', { [field.slice(0, -1)]: [validItem] }, `near ${field}`],
  [
    'wildcard in the middle',
    { [field]: ['a*b'] },
    isPort(field) ? 'FIELD_OUT_OF_RANGE (a port from 1 to 65535) got "a*b"' : 'FIELD_FORMAT_INVALID got "a*b"',
  ],
  ['space around it', { [field]: [` ${validItem} `] }, `FIELD_FORMAT_INVALID got " ${validItem} "`],
];

const listRows = lists.flatMap(({ field, place, beside, good }) =>
  malformedLists(good, field).map(
    ([written, value, message]): RestrictionRow => ({
      ...{ kind: 'AuthorizationPolicy', field, written },
      spec: rule(place({ ...beside, ...value })),
      outcome: refusedOutcome(message),
    }),
  ),
);

const policyRows: readonly RestrictionRow[] = [
  ...rowsOfPolicy(
    'action',
    ['lower case', { action: 'deny', rules: [{}] }, refusedOutcome('near DENY')],
    ['unknown', { action: 'BLOCK', rules: [{}] }, refusedOutcome('FIELD_VALUE_UNKNOWN got')],
    ['empty text', { action: '', rules: [{}] }, refusedOutcome('FIELD_VALUE_UNKNOWN got')],
    ['null', { action: null, rules: [{}] }, refusedOutcome('FIELD_EMPTY')],
    ['space around it', { action: 'DENY ', rules: [{}] }, refusedOutcome('near DENY')],
    ['missing', { rules: [{}] }, allowsAll],
  ),
  ...rowsOfPolicy(
    'rules',
    ['missing', {}, allowsNone('rules: FIELD_DOUBTFUL')],
    ['empty list', { rules: [] }, allowsNone('rules: FIELD_DOUBTFUL')],
    ['missing with DENY', { action: 'DENY' }, refusedOutcome('rules: FIELD_REQUIRED')],
    ['null', { rules: null }, refusedOutcome('FIELD_EMPTY')],
    ['null in it', { rules: [null] }, refusedOutcome('FIELD_TYPE_INVALID got')],
    ['empty rule', { rules: [{}] }, allowsAll],
    ['empty rule with DENY', { action: 'DENY', rules: [{}] }, allowsNone('rules[0]: FIELD_DOUBTFUL')],
    ['misspelt', { rule: [{}] }, refusedOutcome('near rules')],
  ),
  ...rowsOfPolicy(
    'from',
    ['empty list', rule({ from: [] }), refusedOutcome('FIELD_EMPTY')],
    ['null', rule({ from: null, ...to({ methods: ['GET'] }) }), refusedOutcome('FIELD_EMPTY')],
    ['null in it', rule({ from: [null] }), refusedOutcome('FIELD_TYPE_INVALID got')],
    ['no source', rule({ from: [{}] }), refusedOutcome('FIELD_REQUIRED')],
    ['null as source', rule({ from: [{ source: null }] }), refusedOutcome('FIELD_EMPTY')],
    ['empty source', rule(from({})), refusedOutcome('FIELD_EMPTY')],
    ['source without its level', rule({ from: [{ principals: ['a'] }] }), refusedOutcome('FIELD_UNKNOWN')],
  ),
  ...rowsOfPolicy(
    'to',
    ['empty list', rule({ to: [] }), refusedOutcome('FIELD_EMPTY')],
    ['null', rule({ to: null, ...from({ ipBlocks: ['127.0.0.1'] }) }), refusedOutcome('FIELD_EMPTY')],
    ['no operation', rule({ to: [{}] }), refusedOutcome('FIELD_REQUIRED')],
    ['empty operation', rule(to({})), refusedOutcome('FIELD_EMPTY')],
  ),
  ...rowsOfPolicy(
    'when',
    ['empty list', rule({ when: [] }), refusedOutcome('FIELD_EMPTY')],
    ['null', rule({ when: null, ...to({ methods: ['GET'] }) }), refusedOutcome('FIELD_EMPTY')],
    [
      'unknown key',
      rule(when({ key: 'request.header[x]', values: ['a'] })),
      refusedOutcome('key: FIELD_FORMAT_INVALID got'),
    ],
    [
      'key in odd case',
      rule(when({ key: 'Request.headers[x]', values: ['a'] })),
      refusedOutcome('key: FIELD_FORMAT_INVALID got'),
    ],
    [
      'key with spaces',
      rule(when({ key: ' source.ip', values: ['127.0.0.1'] })),
      refusedOutcome('key: FIELD_FORMAT_INVALID got'),
    ],
    ['empty key', rule(when({ key: '', values: ['a'] })), refusedOutcome('FIELD_EMPTY')],
    ['no values', rule(when({ key: 'source.ip' })), refusedOutcome('FIELD_REQUIRED (values or notValues) got none')],
    ['empty values', rule(when({ key: 'source.ip', values: [] })), refusedOutcome('FIELD_EMPTY')],
    [
      'null as values',
      rule(when({ key: 'source.ip', values: null, notValues: ['10.0.0.1'] })),
      refusedOutcome('FIELD_EMPTY'),
    ],
    ['empty text', rule(when({ key: 'request.headers[x]', values: [''] })), refusedOutcome('FIELD_EMPTY')],
    ['misspelt values', rule(when({ key: 'source.ip', value: ['10.0.0.1'] })), refusedOutcome('near values')],
    [
      'claim without a name',
      rule(when({ key: 'request.auth.claims[]', values: ['a'] })),
      refusedOutcome('key: FIELD_FORMAT_INVALID got'),
    ],
  ),
  ...rowsOfPolicy(
    'when request.headers',
    [
      'any',
      rule(when({ key: 'request.headers[x-a]', values: ['*'] })),
      { lets: [{ headers: { 'x-a': 'b' } }], keepsOut: [anyRequest] },
    ],
    [
      'absent',
      rule(when({ key: 'request.headers[x-a]', notValues: ['*'] })),
      { lets: [anyRequest], keepsOut: [{ headers: { 'x-a': 'b' } }, { headers: { 'x-a': '' } }] },
    ],
    [
      'a beginning',
      rule(when({ key: 'request.headers[X-A]', values: ['b*'] })),
      { lets: [{ headers: { 'x-a': 'bc' } }], keepsOut: [{ headers: { 'x-a': 'cb' } }, anyRequest] },
    ],
    [
      'odd case of the value',
      rule(when({ key: 'request.headers[x-a]', values: ['B'] })),
      { lets: [{ headers: { 'x-a': 'B' } }], keepsOut: [{ headers: { 'x-a': 'b' } }] },
    ],
    [
      'none of',
      rule(when({ key: 'request.headers[x-a]', notValues: ['b'] })),
      { lets: [anyRequest], keepsOut: [{ headers: { 'x-a': 'b' } }] },
    ],
  ),
  ...rowsOfPolicy(
    'methods',
    ['odd case', rule(to({ methods: ['get'] })), allowsNone('methods[0]: FIELD_DOUBTFUL got')],
    ['any', rule(to({ methods: ['*'] })), allowsAll],
    [
      'a beginning',
      rule(to({ methods: ['P*'] })),
      { lets: [{ method: 'POST' }, { method: 'PUT' }], keepsOut: [anyRequest] },
    ],
    ['an end', rule(to({ methods: ['*ET'] })), { lets: [anyRequest], keepsOut: [{ method: 'POST' }] }],
    ['none of', rule(to({ notMethods: ['GET'] })), { lets: [{ method: 'POST' }], keepsOut: [anyRequest] }],
  ),
  ...rowsOfPolicy(
    'paths',
    ['odd case', rule(to({ paths: ['/A'] })), { lets: [{ path: '/A' }], keepsOut: [{ path: '/a' }] }],
    ['any', rule(to({ paths: ['*'] })), allowsAll],
    [
      'with a query',
      rule(to({ paths: ['/a'] })),
      { lets: [{ path: '/a?b=c' }], keepsOut: [{ path: '/a/' }, { path: '/ab' }] },
    ],
    ['a beginning', rule(to({ paths: ['/a/*'] })), { lets: [{ path: '/a/b' }], keepsOut: [{ path: '/a' }] }],
    [
      'dots and slashes',
      rule(to({ notPaths: ['/secret*'] })),
      { lets: [{ path: '/a' }], keepsOut: [{ path: '/a/../secret' }, { path: '/secret' }] },
    ],
    ['without a slash', rule(to({ paths: ['a'] })), allowsNone('paths[0]: FIELD_DOUBTFUL got')],
    [
      'without a slash, denied',
      { action: 'DENY', ...rule(to({ paths: ['admin'] })) },
      { lets: [anyRequest, { path: '/admin' }], keepsOut: [], warned: 'paths[0]: FIELD_DOUBTFUL got' },
    ],
    [
      'with a query in it, denied',
      { action: 'DENY', ...rule(to({ paths: ['/a?b=c'] })) },
      { lets: [{ path: '/a?b=c' }, { path: '/a' }], keepsOut: [], warned: 'paths[0]: FIELD_DOUBTFUL got' },
    ],
    ['none of', rule(to({ notPaths: ['/a'] })), { lets: [{ path: '/b' }], keepsOut: [{ path: '/a' }] }],
  ),
  ...rowsOfPolicy(
    'hosts',
    [
      'odd case',
      rule(to({ hosts: ['SHOP.test'] })),
      { lets: [anyRequest, { host: 'shop.TEST' }], keepsOut: [{ host: 'other.shop.test' }] },
    ],
    ['an end', rule(to({ hosts: ['*.shop.test'] })), { lets: [{ host: 'a.shop.test' }], keepsOut: [anyRequest] }],
    [
      'odd case, denied',
      { action: 'DENY', ...rule(to({ hosts: ['SHOP.test'] })) },
      { lets: [{ host: 'a.shop.test' }], keepsOut: [anyRequest, { host: 'Shop.Test' }] },
    ],
  ),
  ...rowsOfPolicy('hosts', [
    'denied, with its scheme',
    { action: 'DENY', ...rule(to({ hosts: ['http://shop.test'] })) },
    { ...allowsAll, warned: 'hosts[0]: FIELD_DOUBTFUL got' },
  ]),
  ...rowsOfPolicy(
    'ipBlocks',
    ['all addresses', rule(from({ ipBlocks: ['0.0.0.0/0'] })), allowsAll],
    ['none of all addresses', rule(from({ notIpBlocks: ['0.0.0.0/0'] })), allowsNone()],
    ['no address', rule(from({ ipBlocks: ['localhost'] })), refusedOutcome('FIELD_FORMAT_INVALID got')],
    ['range too wide', rule(from({ ipBlocks: ['10.0.0.0/33'] })), refusedOutcome('FIELD_FORMAT_INVALID got')],
    ['of another family', rule(from({ ipBlocks: ['::/0'] })), allowsNone()],
  ),
  ...rowsOfPolicy(
    'ports',
    ['zero', rule(to({ ports: ['0'] })), refusedOutcome('FIELD_OUT_OF_RANGE (a port from 1 to 65535) got')],
    ['any', rule(to({ ports: ['*'] })), refusedOutcome('FIELD_OUT_OF_RANGE (a port from 1 to 65535) got')],
    ['a range', rule(to({ ports: ['80-90'] })), refusedOutcome('FIELD_OUT_OF_RANGE (a port from 1 to 65535) got')],
    ['another', rule(to({ ports: ['1'] })), allowsNone()],
  ),
  ...rowsOfPolicy(
    'principals',
    // No client presents a certificate, which `*` requires.
    ['any, in plaintext', rule(from({ principals: ['*'] })), allowsNone()],
    ['none of any, in plaintext', rule(from({ notPrincipals: ['*'] })), allowsAll],
    // Without a warning it would look correct, although the rule denies no request.
    [
      'denied, with its scheme',
      { action: 'DENY', ...rule(from({ principals: ['spiffe://cluster.local/ns/shop/sa/web'] })) },
      { ...allowsAll, warned: 'FIELD_DOUBTFUL got "spiffe:' },
    ],
    [
      'denied, without a path',
      { action: 'DENY', ...rule(from({ principals: ['web'] })) },
      { ...allowsAll, warned: 'FIELD_DOUBTFUL got' },
    ],
    [
      'denied, with its scheme, as a condition',
      { action: 'DENY', ...rule(when({ key: 'source.principal', values: ['spiffe://cluster.local/ns/a/sa/b'] })) },
      { ...allowsAll, warned: 'FIELD_DOUBTFUL got "spiffe:' },
    ],
    ['denied any, in plaintext', { action: 'DENY', ...rule(from({ principals: ['*'] })) }, allowsAll],
  ),
  ...rowsOfPolicy(
    'namespaces',
    ['any, in plaintext', rule(from({ namespaces: ['*'] })), allowsNone()],
    [
      'denied, with a capital letter',
      { action: 'DENY', ...rule(from({ namespaces: ['Shop'] })) },
      { ...allowsAll, warned: 'namespaces[0]: FIELD_DOUBTFUL got' },
    ],
  ),
  ...rowsOfPolicy('requestPrincipals', [
    'any, without a token',
    rule(from({ requestPrincipals: ['*'] })),
    allowsNone(),
  ]),
  ...rowsOfPolicy(
    'selector',
    ['null', { selector: null, rules: [{}] }, refusedOutcome('FIELD_EMPTY')],
    ['without labels', { selector: {} }, allowsNone('selector: FIELD_DOUBTFUL')],
    ['null as labels', { selector: { matchLabels: null } }, refusedOutcome('FIELD_EMPTY')],
    [
      'of no workload',
      { selector: { matchLabels: { app: 'nobody' } } },
      { ...allowsAll, warned: 'rules: FIELD_DOUBTFUL' },
    ],
    ['misspelt', { selectors: { matchLabels: { app: 'a' } } }, refusedOutcome('near selector')],
    ['labels without their level', { selector: { istio: 'edge' } }, refusedOutcome('FIELD_UNKNOWN')],
  ),
  ...rowsOfPolicy(
    'provider',
    ['missing', { action: 'CUSTOM', rules: [{}] }, refusedOutcome('provider: FIELD_REQUIRED')],
    ['unknown', { action: 'CUSTOM', provider: { name: 'nobody' }, rules: [{}] }, allowsNone()],
  ),
];

const validRule = { issuer, jwks: issuersKeys };
const jwt = (of: object): Readonly<Record<string, unknown>> => ({ jwtRules: [of] });

const requestAuthenticationRows = (field: string, ...rows: readonly Written[]): RestrictionRow[] =>
  rows.map(([written, spec, outcome]) => ({ kind: 'RequestAuthentication', field, written, spec, outcome }));

const knownIssuerRequest: RestrictedRequest = { token: {} };
const otherIssuerRequest: RestrictedRequest = { token: { iss: 'https://other.test' } };

const tokenRows: readonly RestrictionRow[] = [
  ...requestAuthenticationRows(
    'jwtRules',
    ['null', { jwtRules: null }, refusedOutcome('FIELD_EMPTY')],
    ['null in it', { jwtRules: [null] }, refusedOutcome('FIELD_TYPE_INVALID got')],
    ['misspelt', { jwtRule: [validRule] }, refusedOutcome('near jwtRules')],
    ['as it is meant', jwt(validRule), { lets: [anyRequest, knownIssuerRequest], keepsOut: [otherIssuerRequest] }],
  ),
  ...requestAuthenticationRows(
    'issuer',
    ['missing', jwt({ jwks: issuersKeys }), refusedOutcome('FIELD_REQUIRED')],
    ['empty', jwt({ issuer: '', jwks: issuersKeys }), refusedOutcome('FIELD_REQUIRED')],
    ['null', jwt({ issuer: null, jwksUri: 'http://a.test/keys' }), refusedOutcome('FIELD_EMPTY')],
    [
      'odd case',
      jwt({ ...validRule, issuer: 'HTTPS://id.test' }),
      { lets: [anyRequest], keepsOut: [knownIssuerRequest] },
    ],
    [
      'space around it',
      jwt({ ...validRule, issuer: `${issuer} ` }),
      refusedOutcome('issuer: FIELD_FORMAT_INVALID got "https://id.test "'),
    ],
  ),
  ...requestAuthenticationRows(
    'audiences',
    [
      'empty list',
      jwt({ ...validRule, audiences: [] }),
      { lets: [{ token: { aud: 'any' } }], keepsOut: [otherIssuerRequest], warned: 'audiences: FIELD_DOUBTFUL' },
    ],
    ['null', jwt({ ...validRule, audiences: null }), refusedOutcome('FIELD_EMPTY')],
    ['empty text', jwt({ ...validRule, audiences: [''] }), refusedOutcome('FIELD_EMPTY')],
    ['one text, no list', jwt({ ...validRule, audiences: 'a' }), refusedOutcome('FIELD_TYPE_INVALID got')],
    [
      'odd case',
      jwt({ ...validRule, audiences: ['SHOP'] }),
      { lets: [{ token: { aud: 'SHOP' } }], keepsOut: [{ token: { aud: 'shop' } }, knownIssuerRequest] },
    ],
    [
      'any',
      jwt({ ...validRule, audiences: ['*'] }),
      { lets: [{ token: { aud: '*' } }], keepsOut: [{ token: { aud: 'shop' } }, knownIssuerRequest] },
    ],
  ),
  ...requestAuthenticationRows(
    'jwks',
    ['empty text', jwt({ issuer, jwks: '' }), refusedOutcome('FIELD_EMPTY')],
    ['null', jwt({ issuer, jwks: null }), refusedOutcome('FIELD_EMPTY')],
    [
      'no key',
      jwt({ issuer, jwks: '{"keys":[]}' }),
      { lets: [anyRequest], keepsOut: [knownIssuerRequest, otherIssuerRequest] },
    ],
    ['missing', jwt({ issuer }), { lets: [anyRequest], keepsOut: [knownIssuerRequest, otherIssuerRequest] }],
    ['no JSON', jwt({ issuer, jwks: 'keys' }), refusedOutcome('jwks: FIELD_FORMAT_INVALID')],
    ['key of no type', jwt({ issuer, jwks: '{"keys":[{}]}' }), refusedOutcome('jwks: FIELD_FORMAT_INVALID')],
  ),
];

const peerAuthenticationRows = (field: string, ...rows: readonly Written[]): RestrictionRow[] =>
  rows.map(([written, spec, outcome]) => ({ kind: 'PeerAuthentication', field, written, spec, outcome }));

const selector = { matchLabels: { app: 'cart' } };

/** Rows for a sidecar that receives plaintext requests. */
const peerRows: readonly RestrictionRow[] = [
  ...peerAuthenticationRows(
    'mtls',
    ['null', { selector, mtls: null }, refusedOutcome('FIELD_EMPTY')],
    ['missing', { selector }, allowsAll],
    ['without a mode', { selector, mtls: {} }, allowsAll],
    ['null as mode', { selector, mtls: { mode: null } }, refusedOutcome('FIELD_EMPTY')],
    ['lower case', { selector, mtls: { mode: 'strict' } }, refusedOutcome('near STRICT')],
    ['space around it', { selector, mtls: { mode: 'STRICT ' } }, refusedOutcome('near STRICT')],
    ['empty text', { selector, mtls: { mode: '' } }, refusedOutcome('FIELD_VALUE_UNKNOWN got')],
    ['unknown', { selector, mtls: { mode: 'MUTUAL' } }, refusedOutcome('FIELD_VALUE_UNKNOWN got')],
    ['misspelt', { selector, mTLS: { mode: 'STRICT' } }, refusedOutcome('near mtls')],
    ['text for an object', { selector, mtls: 'STRICT' }, refusedOutcome('FIELD_TYPE_INVALID got')],
    ['UNSET', { selector, mtls: { mode: 'UNSET' } }, allowsAll],
    ['STRICT', { selector, mtls: { mode: 'STRICT' } }, allowsNone()],
    ['STRICT for all', { mtls: { mode: 'STRICT' } }, allowsNone()],
  ),
  ...peerAuthenticationRows(
    'portLevelMtls',
    ['empty', { selector, portLevelMtls: {} }, refusedOutcome('FIELD_EMPTY')],
    ['null', { selector, portLevelMtls: null }, refusedOutcome('FIELD_EMPTY')],
    [
      'no port',
      { selector, portLevelMtls: { http: { mode: 'STRICT' } } },
      refusedOutcome('FIELD_OUT_OF_RANGE (a port from 1 to 65535) got'),
    ],
    [
      'port with a zero before it',
      { selector, portLevelMtls: { '080': { mode: 'STRICT' } } },
      refusedOutcome('FIELD_OUT_OF_RANGE (a port from 1 to 65535) got'),
    ],
    [
      'null as its mode',
      { selector, mtls: { mode: 'STRICT' }, portLevelMtls: { '80': null } },
      refusedOutcome('FIELD_TYPE_INVALID got'),
    ],
    ['without a mode', { selector, mtls: { mode: 'STRICT' }, portLevelMtls: { '80': {} } }, allowsNone()],
    [
      'without a selector',
      { portLevelMtls: { '80': { mode: 'STRICT' } } },
      refusedOutcome('portLevelMtls: FIELD_CONFLICT'),
    ],
    ['lower case', { selector, portLevelMtls: { '80': { mode: 'strict' } } }, refusedOutcome('near STRICT')],
  ),
  ...peerAuthenticationRows('selector', [
    'null',
    { selector: null, mtls: { mode: 'STRICT' } },
    refusedOutcome('FIELD_EMPTY'),
  ]),
];

export const table: readonly RestrictionRow[] = [...listRows, ...policyRows, ...tokenRows, ...peerRows];

/** A `null` field of another kind, where an empty value would accept, allow or trust more. All are rejected. */
export interface NullRow {
  readonly kind: string;
  readonly apiVersion: string;
  /** Path in the spec, as in error messages. */
  readonly field: string;
  readonly spec: Readonly<Record<string, unknown>>;
}

const backend = { destination: { host: 'a.test' } };
const nullInVirtualService = (field: string, spec: object): NullRow => ({
  ...{ kind: 'VirtualService', apiVersion: 'networking.istio.io/v1', field: `spec.${field}` },
  spec: { hosts: ['a.test'], ...spec },
});
const httpMatch = (field: string, match: unknown, path = `match[0].${field}`): NullRow =>
  nullInVirtualService(`http[0].${path}`, { http: [{ match, route: [backend] }] });
const matchFields = [
  ...['uri', 'scheme', 'method', 'authority', 'headers', 'withoutHeaders', 'queryParams', 'port', 'sourceLabels'],
  ...['sourceNamespace', 'gateways'],
];
const l4Fields = ['destinationSubnets', 'port', 'sourceLabels', 'gateways', 'sourceNamespace'];
const claim = '@request.auth.claims.groups';

const virtualServiceNulls: readonly NullRow[] = [
  nullInVirtualService('gateways', { gateways: null, http: [{ route: [backend] }] }),
  httpMatch('', null, 'match'),
  ...matchFields.map((field) => httpMatch(field, [{ ignoreUriCase: true, [field]: null }])),
  ...['exact', 'prefix', 'regex'].flatMap((matchKind) => [
    httpMatch(matchKind, [{ uri: { [matchKind]: null } }], `match[0].uri.${matchKind}`),
    httpMatch(
      matchKind,
      [{ headers: { [claim]: { [matchKind]: null } } }],
      `match[0].headers["${claim}"].${matchKind}`,
    ),
    httpMatch(matchKind, [{ queryParams: { a: { [matchKind]: null } } }], `match[0].queryParams.a.${matchKind}`),
    httpMatch(matchKind, [{ withoutHeaders: { a: { [matchKind]: null } } }], `match[0].withoutHeaders.a.${matchKind}`),
  ]),
  nullInVirtualService('tcp[0].match', { tcp: [{ match: null, route: [backend] }] }),
  ...[...l4Fields, 'sourceSubnet'].map((field) =>
    nullInVirtualService(`tcp[0].match[0].${field}`, { tcp: [{ match: [{ [field]: null }], route: [backend] }] }),
  ),
  ...l4Fields.map((field) =>
    nullInVirtualService(`tls[0].match[0].${field}`, {
      tls: [{ match: [{ sniHosts: ['a.test'], [field]: null }], route: [backend] }],
    }),
  ),
];

const nullInDestinationRule = (field: string, spec: object): NullRow => ({
  ...{ kind: 'DestinationRule', apiVersion: 'networking.istio.io/v1', field: `spec.${field}` },
  spec: { host: 'a.test', ...spec },
});
const simple = { loadBalancer: { simple: 'RANDOM' } };
const portLevel = (tls: unknown): object => ({ portLevelSettings: [{ port: { number: 80 }, ...simple, tls }] });

const clientTlsNulls: readonly NullRow[] = [
  nullInDestinationRule('trafficPolicy.tls', { trafficPolicy: { ...simple, tls: null } }),
  nullInDestinationRule('trafficPolicy.portLevelSettings[0].tls', { trafficPolicy: portLevel(null) }),
  nullInDestinationRule('subsets[0].trafficPolicy.tls', {
    subsets: [{ name: 'v1', labels: { v: '1' }, trafficPolicy: { ...simple, tls: null } }],
  }),
  ...['credentialName', 'caCrl', 'caCertificates', 'subjectAltNames'].map((field) =>
    nullInDestinationRule(`trafficPolicy.tls.${field}`, { trafficPolicy: { tls: { mode: 'SIMPLE', [field]: null } } }),
  ),
];

const mutualTls = { mode: 'MUTUAL', serverCertificate: '/c.pem', privateKey: '/k.pem', caCertificates: '/ca.pem' };
const nullInGateway = (field: string, protocol: string, tls: unknown): NullRow => ({
  ...{ kind: 'Gateway', apiVersion: 'networking.istio.io/v1', field: `spec.servers[0].${field}` },
  spec: { selector: { a: 'b' }, servers: [{ port: { number: 443, name: 'a', protocol }, hosts: ['a.test'], tls }] },
});
const nullInSidecar = (field: string, tls: unknown): NullRow => ({
  ...{ kind: 'Sidecar', apiVersion: 'networking.istio.io/v1', field: `spec.ingress[0].${field}` },
  spec: {
    ingress: [{ port: { number: 443, name: 'a', protocol: 'HTTPS' }, defaultEndpoint: '127.0.0.1:80', tls }],
  },
});
const clientChecks = ['subjectAltNames', 'verifyCertificateSpki', 'verifyCertificateHash', 'caCertCredentialName'];

const serverTlsNulls: readonly NullRow[] = [
  nullInGateway('tls', 'HTTPS', null),
  nullInGateway('tls', 'TCP', null),
  nullInGateway('tls.mode', 'HTTPS', { mode: null, credentialName: 'a' }),
  ...['caCrl', ...clientChecks].map((field) => nullInGateway(`tls.${field}`, 'HTTPS', { ...mutualTls, [field]: null })),
  nullInGateway('tls.tlsCertificates[0].caCertificates', 'HTTPS', {
    ...{ mode: 'MUTUAL', caCertificates: '/ca.pem' },
    tlsCertificates: [{ serverCertificate: '/c.pem', privateKey: '/k.pem', caCertificates: null }],
  }),
  nullInSidecar('tls', null),
  nullInSidecar('tls.caCrl', { ...mutualTls, caCrl: null }),
];

const nullInListener = (field: string, listener: object): NullRow => ({
  ...{ kind: 'Gateway', apiVersion: 'gateway.networking.k8s.io/v1', field: `spec.listeners[0].${field}` },
  spec: {
    gatewayClassName: 'istio',
    listeners: [
      {
        name: 'a',
        port: 443,
        protocol: 'HTTPS',
        hostname: 'a.test',
        tls: { certificateRefs: [{ name: 'a' }] },
        ...listener,
      },
    ],
  },
});
const nullInRoute = (kind: string, field: string, spec: object): NullRow => ({
  ...{ kind, apiVersion: 'gateway.networking.k8s.io/v1', field: `spec.${field}` },
  spec: { parentRefs: [{ name: 'a' }], rules: [{ backendRefs: [{ name: 'a', port: 80 }] }], ...spec },
});
const routeMatch = (kind: string, field: string, match: object): NullRow =>
  nullInRoute(kind, `rules[0].matches[0].${field}`, { rules: [{ matches: [match] }] });

const gatewayApiNulls: readonly NullRow[] = [
  nullInListener('hostname', { hostname: null }),
  ...['options', 'frontendValidation'].map((field) =>
    nullInListener(`tls.${field}`, { tls: { certificateRefs: [{ name: 'a' }], [field]: null } }),
  ),
  ...['HTTPRoute', 'GRPCRoute'].flatMap((kind) => [
    nullInRoute(kind, 'hostnames', { hostnames: null }),
    nullInRoute(kind, 'parentRefs[0].sectionName', { parentRefs: [{ name: 'a', sectionName: null }] }),
    nullInRoute(kind, 'parentRefs[0].port', { parentRefs: [{ name: 'a', port: null }] }),
    nullInRoute(kind, 'rules[0].matches', { rules: [{ matches: null }] }),
    ...['headers', 'method'].map((field) => routeMatch(kind, field, { [field]: null })),
  ]),
  ...['path', 'queryParams'].map((field) => routeMatch('HTTPRoute', field, { [field]: null })),
  routeMatch('HTTPRoute', 'path.type', { path: { type: null, value: '/a' } }),
  routeMatch('HTTPRoute', 'path.value', { path: { type: 'PathPrefix', value: null } }),
  routeMatch('GRPCRoute', 'method.service', { method: { method: 'A', service: null } }),
  routeMatch('GRPCRoute', 'method.method', { method: { service: 'a', method: null } }),
];

export const nulls: readonly NullRow[] = [
  ...virtualServiceNulls,
  ...clientTlsNulls,
  ...serverTlsNulls,
  ...gatewayApiNulls,
];
