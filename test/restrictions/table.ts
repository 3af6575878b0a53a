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

const everything: RestrictedRequest = {};
const allowsNone = (warned?: string): RestrictionOutcome => ({
  lets: [],
  keepsOut: [everything],
  ...(warned && { warned }),
});
const allowsAll: RestrictionOutcome = { lets: [everything], keepsOut: [] };
const refused = (message: string): RestrictionOutcome => ({ refused: message });

const rule = (of: object): Readonly<Record<string, unknown>> => ({ rules: [of] });
const to = (operation: unknown): object => ({ to: [{ operation }] });
const from = (source: unknown): object => ({ from: [{ source }] });
const when = (condition: unknown): object => ({ when: [condition] });

type Written = readonly [written: string, spec: Readonly<Record<string, unknown>>, outcome: RestrictionOutcome];

const ofPolicy = (field: string, ...rows: readonly Written[]): RestrictionRow[] =>
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

const odd = (good: string, field: string): readonly (readonly [string, object, string])[] => [
  ['empty list', { [field]: [] }, 'FIELD_EMPTY'],
  ['null', { [field]: null }, 'FIELD_EMPTY'],
  ['empty text in it', { [field]: [''] }, 'FIELD_EMPTY'],
  ['null in it', { [field]: [null] }, 'FIELD_TYPE_INVALID got'],
  ['one text, no list', { [field]: good }, 'FIELD_TYPE_INVALID got'],
  ['number in it', { [field]: [5] }, 'FIELD_TYPE_INVALID got'],
  ['capital letter in the name', { [`${field[0]!.toUpperCase()}${field.slice(1)}`]: [good] }, `near ${field}`],
  ['misspelt name', { [field.slice(0, -1)]: [good] }, `near ${field}`],
  [
    'wildcard in the middle',
    { [field]: ['a*b'] },
    isPort(field) ? 'FIELD_OUT_OF_RANGE (a port from 1 to 65535) got "a*b"' : 'FIELD_FORMAT_INVALID got "a*b"',
  ],
  ['space around it', { [field]: [` ${good} `] }, `FIELD_FORMAT_INVALID got " ${good} "`],
];

const listRows = lists.flatMap(({ field, place, beside, good }) =>
  odd(good, field).map(
    ([written, value, message]): RestrictionRow => ({
      ...{ kind: 'AuthorizationPolicy', field, written },
      spec: rule(place({ ...beside, ...value })),
      outcome: refused(message),
    }),
  ),
);

const policyRows: readonly RestrictionRow[] = [
  ...ofPolicy(
    'action',
    ['lower case', { action: 'deny', rules: [{}] }, refused('near DENY')],
    ['unknown', { action: 'BLOCK', rules: [{}] }, refused('FIELD_VALUE_UNKNOWN got')],
    ['empty text', { action: '', rules: [{}] }, refused('FIELD_VALUE_UNKNOWN got')],
    ['null', { action: null, rules: [{}] }, refused('FIELD_EMPTY')],
    ['space around it', { action: 'DENY ', rules: [{}] }, refused('near DENY')],
    ['missing', { rules: [{}] }, allowsAll],
  ),
  ...ofPolicy(
    'rules',
    ['missing', {}, allowsNone('rules: FIELD_DOUBTFUL')],
    ['empty list', { rules: [] }, allowsNone('rules: FIELD_DOUBTFUL')],
    ['missing with DENY', { action: 'DENY' }, refused('rules: FIELD_REQUIRED')],
    ['null', { rules: null }, refused('FIELD_EMPTY')],
    ['null in it', { rules: [null] }, refused('FIELD_TYPE_INVALID got')],
    ['empty rule', { rules: [{}] }, allowsAll],
    ['empty rule with DENY', { action: 'DENY', rules: [{}] }, allowsNone('rules[0]: FIELD_DOUBTFUL')],
    ['misspelt', { rule: [{}] }, refused('near rules')],
  ),
  ...ofPolicy(
    'from',
    ['empty list', rule({ from: [] }), refused('FIELD_EMPTY')],
    ['null', rule({ from: null, ...to({ methods: ['GET'] }) }), refused('FIELD_EMPTY')],
    ['null in it', rule({ from: [null] }), refused('FIELD_TYPE_INVALID got')],
    ['no source', rule({ from: [{}] }), refused('FIELD_REQUIRED')],
    ['null as source', rule({ from: [{ source: null }] }), refused('FIELD_EMPTY')],
    ['empty source', rule(from({})), refused('FIELD_EMPTY')],
    ['source without its level', rule({ from: [{ principals: ['a'] }] }), refused('FIELD_UNKNOWN')],
  ),
  ...ofPolicy(
    'to',
    ['empty list', rule({ to: [] }), refused('FIELD_EMPTY')],
    ['null', rule({ to: null, ...from({ ipBlocks: ['127.0.0.1'] }) }), refused('FIELD_EMPTY')],
    ['no operation', rule({ to: [{}] }), refused('FIELD_REQUIRED')],
    ['empty operation', rule(to({})), refused('FIELD_EMPTY')],
  ),
  ...ofPolicy(
    'when',
    ['empty list', rule({ when: [] }), refused('FIELD_EMPTY')],
    ['null', rule({ when: null, ...to({ methods: ['GET'] }) }), refused('FIELD_EMPTY')],
    ['unknown key', rule(when({ key: 'request.header[x]', values: ['a'] })), refused('key: FIELD_FORMAT_INVALID got')],
    [
      'key in odd case',
      rule(when({ key: 'Request.headers[x]', values: ['a'] })),
      refused('key: FIELD_FORMAT_INVALID got'),
    ],
    [
      'key with spaces',
      rule(when({ key: ' source.ip', values: ['127.0.0.1'] })),
      refused('key: FIELD_FORMAT_INVALID got'),
    ],
    ['empty key', rule(when({ key: '', values: ['a'] })), refused('FIELD_EMPTY')],
    ['no values', rule(when({ key: 'source.ip' })), refused('FIELD_REQUIRED (values or notValues) got none')],
    ['empty values', rule(when({ key: 'source.ip', values: [] })), refused('FIELD_EMPTY')],
    ['null as values', rule(when({ key: 'source.ip', values: null, notValues: ['10.0.0.1'] })), refused('FIELD_EMPTY')],
    ['empty text', rule(when({ key: 'request.headers[x]', values: [''] })), refused('FIELD_EMPTY')],
    ['misspelt values', rule(when({ key: 'source.ip', value: ['10.0.0.1'] })), refused('near values')],
    [
      'claim without a name',
      rule(when({ key: 'request.auth.claims[]', values: ['a'] })),
      refused('key: FIELD_FORMAT_INVALID got'),
    ],
  ),
  ...ofPolicy(
    'when request.headers',
    [
      'any',
      rule(when({ key: 'request.headers[x-a]', values: ['*'] })),
      { lets: [{ headers: { 'x-a': 'b' } }], keepsOut: [everything] },
    ],
    [
      'absent',
      rule(when({ key: 'request.headers[x-a]', notValues: ['*'] })),
      { lets: [everything], keepsOut: [{ headers: { 'x-a': 'b' } }, { headers: { 'x-a': '' } }] },
    ],
    [
      'a beginning',
      rule(when({ key: 'request.headers[X-A]', values: ['b*'] })),
      { lets: [{ headers: { 'x-a': 'bc' } }], keepsOut: [{ headers: { 'x-a': 'cb' } }, everything] },
    ],
    [
      'odd case of the value',
      rule(when({ key: 'request.headers[x-a]', values: ['B'] })),
      { lets: [{ headers: { 'x-a': 'B' } }], keepsOut: [{ headers: { 'x-a': 'b' } }] },
    ],
    [
      'none of',
      rule(when({ key: 'request.headers[x-a]', notValues: ['b'] })),
      { lets: [everything], keepsOut: [{ headers: { 'x-a': 'b' } }] },
    ],
  ),
  ...ofPolicy(
    'methods',
    ['odd case', rule(to({ methods: ['get'] })), allowsNone('methods[0]: FIELD_DOUBTFUL got')],
    ['any', rule(to({ methods: ['*'] })), allowsAll],
    [
      'a beginning',
      rule(to({ methods: ['P*'] })),
      { lets: [{ method: 'POST' }, { method: 'PUT' }], keepsOut: [everything] },
    ],
    ['an end', rule(to({ methods: ['*ET'] })), { lets: [everything], keepsOut: [{ method: 'POST' }] }],
    ['none of', rule(to({ notMethods: ['GET'] })), { lets: [{ method: 'POST' }], keepsOut: [everything] }],
  ),
  ...ofPolicy(
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
      { lets: [everything, { path: '/admin' }], keepsOut: [], warned: 'paths[0]: FIELD_DOUBTFUL got' },
    ],
    [
      'with a query in it, denied',
      { action: 'DENY', ...rule(to({ paths: ['/a?b=c'] })) },
      { lets: [{ path: '/a?b=c' }, { path: '/a' }], keepsOut: [], warned: 'paths[0]: FIELD_DOUBTFUL got' },
    ],
    ['none of', rule(to({ notPaths: ['/a'] })), { lets: [{ path: '/b' }], keepsOut: [{ path: '/a' }] }],
  ),
  ...ofPolicy(
    'hosts',
    [
      'odd case',
      rule(to({ hosts: ['SHOP.test'] })),
      { lets: [everything, { host: 'shop.TEST' }], keepsOut: [{ host: 'other.shop.test' }] },
    ],
    ['an end', rule(to({ hosts: ['*.shop.test'] })), { lets: [{ host: 'a.shop.test' }], keepsOut: [everything] }],
    [
      'odd case, denied',
      { action: 'DENY', ...rule(to({ hosts: ['SHOP.test'] })) },
      { lets: [{ host: 'a.shop.test' }], keepsOut: [everything, { host: 'Shop.Test' }] },
    ],
  ),
  ...ofPolicy('hosts', [
    'denied, with its scheme',
    { action: 'DENY', ...rule(to({ hosts: ['http://shop.test'] })) },
    { ...allowsAll, warned: 'hosts[0]: FIELD_DOUBTFUL got' },
  ]),
  ...ofPolicy(
    'ipBlocks',
    ['all addresses', rule(from({ ipBlocks: ['0.0.0.0/0'] })), allowsAll],
    ['none of all addresses', rule(from({ notIpBlocks: ['0.0.0.0/0'] })), allowsNone()],
    ['no address', rule(from({ ipBlocks: ['localhost'] })), refused('FIELD_FORMAT_INVALID got')],
    ['range too wide', rule(from({ ipBlocks: ['10.0.0.0/33'] })), refused('FIELD_FORMAT_INVALID got')],
    ['of another family', rule(from({ ipBlocks: ['::/0'] })), allowsNone()],
  ),
  ...ofPolicy(
    'ports',
    ['zero', rule(to({ ports: ['0'] })), refused('FIELD_OUT_OF_RANGE (a port from 1 to 65535) got')],
    ['any', rule(to({ ports: ['*'] })), refused('FIELD_OUT_OF_RANGE (a port from 1 to 65535) got')],
    ['a range', rule(to({ ports: ['80-90'] })), refused('FIELD_OUT_OF_RANGE (a port from 1 to 65535) got')],
    ['another', rule(to({ ports: ['1'] })), allowsNone()],
  ),
  ...ofPolicy(
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
  ...ofPolicy(
    'namespaces',
    ['any, in plaintext', rule(from({ namespaces: ['*'] })), allowsNone()],
    [
      'denied, with a capital letter',
      { action: 'DENY', ...rule(from({ namespaces: ['Shop'] })) },
      { ...allowsAll, warned: 'namespaces[0]: FIELD_DOUBTFUL got' },
    ],
  ),
  ...ofPolicy('requestPrincipals', ['any, without a token', rule(from({ requestPrincipals: ['*'] })), allowsNone()]),
  ...ofPolicy(
    'selector',
    ['null', { selector: null, rules: [{}] }, refused('FIELD_EMPTY')],
    ['without labels', { selector: {} }, allowsNone('selector: FIELD_DOUBTFUL')],
    ['null as labels', { selector: { matchLabels: null } }, refused('FIELD_EMPTY')],
    [
      'of no workload',
      { selector: { matchLabels: { app: 'nobody' } } },
      { ...allowsAll, warned: 'rules: FIELD_DOUBTFUL' },
    ],
    ['misspelt', { selectors: { matchLabels: { app: 'a' } } }, refused('near selector')],
    ['labels without their level', { selector: { istio: 'edge' } }, refused('FIELD_UNKNOWN')],
  ),
  ...ofPolicy(
    'provider',
    ['missing', { action: 'CUSTOM', rules: [{}] }, refused('provider: FIELD_REQUIRED')],
    ['unknown', { action: 'CUSTOM', provider: { name: 'nobody' }, rules: [{}] }, allowsNone()],
  ),
];

const good = { issuer, jwks: issuersKeys };
const jwt = (of: object): Readonly<Record<string, unknown>> => ({ jwtRules: [of] });

const ofTokens = (field: string, ...rows: readonly Written[]): RestrictionRow[] =>
  rows.map(([written, spec, outcome]) => ({ kind: 'RequestAuthentication', field, written, spec, outcome }));

const known: RestrictedRequest = { token: {} };
const foreign: RestrictedRequest = { token: { iss: 'https://other.test' } };

const tokenRows: readonly RestrictionRow[] = [
  ...ofTokens(
    'jwtRules',
    ['null', { jwtRules: null }, refused('FIELD_EMPTY')],
    ['null in it', { jwtRules: [null] }, refused('FIELD_TYPE_INVALID got')],
    ['misspelt', { jwtRule: [good] }, refused('near jwtRules')],
    ['as it is meant', jwt(good), { lets: [everything, known], keepsOut: [foreign] }],
  ),
  ...ofTokens(
    'issuer',
    ['missing', jwt({ jwks: issuersKeys }), refused('FIELD_REQUIRED')],
    ['empty', jwt({ issuer: '', jwks: issuersKeys }), refused('FIELD_REQUIRED')],
    ['null', jwt({ issuer: null, jwksUri: 'http://a.test/keys' }), refused('FIELD_EMPTY')],
    ['odd case', jwt({ ...good, issuer: 'HTTPS://id.test' }), { lets: [everything], keepsOut: [known] }],
    [
      'space around it',
      jwt({ ...good, issuer: `${issuer} ` }),
      refused('issuer: FIELD_FORMAT_INVALID got "https://id.test "'),
    ],
  ),
  ...ofTokens(
    'audiences',
    [
      'empty list',
      jwt({ ...good, audiences: [] }),
      { lets: [{ token: { aud: 'any' } }], keepsOut: [foreign], warned: 'audiences: FIELD_DOUBTFUL' },
    ],
    ['null', jwt({ ...good, audiences: null }), refused('FIELD_EMPTY')],
    ['empty text', jwt({ ...good, audiences: [''] }), refused('FIELD_EMPTY')],
    ['one text, no list', jwt({ ...good, audiences: 'a' }), refused('FIELD_TYPE_INVALID got')],
    [
      'odd case',
      jwt({ ...good, audiences: ['SHOP'] }),
      { lets: [{ token: { aud: 'SHOP' } }], keepsOut: [{ token: { aud: 'shop' } }, known] },
    ],
    [
      'any',
      jwt({ ...good, audiences: ['*'] }),
      { lets: [{ token: { aud: '*' } }], keepsOut: [{ token: { aud: 'shop' } }, known] },
    ],
  ),
  ...ofTokens(
    'jwks',
    ['empty text', jwt({ issuer, jwks: '' }), refused('FIELD_EMPTY')],
    ['null', jwt({ issuer, jwks: null }), refused('FIELD_EMPTY')],
    ['no key', jwt({ issuer, jwks: '{"keys":[]}' }), { lets: [everything], keepsOut: [known, foreign] }],
    ['missing', jwt({ issuer }), { lets: [everything], keepsOut: [known, foreign] }],
    ['no JSON', jwt({ issuer, jwks: 'keys' }), refused('jwks: FIELD_FORMAT_INVALID')],
    ['key of no type', jwt({ issuer, jwks: '{"keys":[{}]}' }), refused('jwks: FIELD_FORMAT_INVALID')],
  ),
];

const ofPeers = (field: string, ...rows: readonly Written[]): RestrictionRow[] =>
  rows.map(([written, spec, outcome]) => ({ kind: 'PeerAuthentication', field, written, spec, outcome }));

const selector = { matchLabels: { app: 'cart' } };

/** For a sidecar that receives plaintext requests. */
const peerRows: readonly RestrictionRow[] = [
  ...ofPeers(
    'mtls',
    ['null', { selector, mtls: null }, refused('FIELD_EMPTY')],
    ['missing', { selector }, allowsAll],
    ['without a mode', { selector, mtls: {} }, allowsAll],
    ['null as mode', { selector, mtls: { mode: null } }, refused('FIELD_EMPTY')],
    ['lower case', { selector, mtls: { mode: 'strict' } }, refused('near STRICT')],
    ['space around it', { selector, mtls: { mode: 'STRICT ' } }, refused('near STRICT')],
    ['empty text', { selector, mtls: { mode: '' } }, refused('FIELD_VALUE_UNKNOWN got')],
    ['unknown', { selector, mtls: { mode: 'MUTUAL' } }, refused('FIELD_VALUE_UNKNOWN got')],
    ['misspelt', { selector, mTLS: { mode: 'STRICT' } }, refused('near mtls')],
    ['text for an object', { selector, mtls: 'STRICT' }, refused('FIELD_TYPE_INVALID got')],
    ['UNSET', { selector, mtls: { mode: 'UNSET' } }, allowsAll],
    ['STRICT', { selector, mtls: { mode: 'STRICT' } }, allowsNone()],
    ['STRICT for all', { mtls: { mode: 'STRICT' } }, allowsNone()],
  ),
  ...ofPeers(
    'portLevelMtls',
    ['empty', { selector, portLevelMtls: {} }, refused('FIELD_EMPTY')],
    ['null', { selector, portLevelMtls: null }, refused('FIELD_EMPTY')],
    [
      'no port',
      { selector, portLevelMtls: { http: { mode: 'STRICT' } } },
      refused('FIELD_OUT_OF_RANGE (a port from 1 to 65535) got'),
    ],
    [
      'port with a zero before it',
      { selector, portLevelMtls: { '080': { mode: 'STRICT' } } },
      refused('FIELD_OUT_OF_RANGE (a port from 1 to 65535) got'),
    ],
    [
      'null as its mode',
      { selector, mtls: { mode: 'STRICT' }, portLevelMtls: { '80': null } },
      refused('FIELD_TYPE_INVALID got'),
    ],
    ['without a mode', { selector, mtls: { mode: 'STRICT' }, portLevelMtls: { '80': {} } }, allowsNone()],
    ['without a selector', { portLevelMtls: { '80': { mode: 'STRICT' } } }, refused('portLevelMtls: FIELD_CONFLICT')],
    ['lower case', { selector, portLevelMtls: { '80': { mode: 'strict' } } }, refused('near STRICT')],
  ),
  ...ofPeers('selector', ['null', { selector: null, mtls: { mode: 'STRICT' } }, refused('FIELD_EMPTY')]),
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
const ofVirtualService = (field: string, spec: object): NullRow => ({
  ...{ kind: 'VirtualService', apiVersion: 'networking.istio.io/v1', field: `spec.${field}` },
  spec: { hosts: ['a.test'], ...spec },
});
const httpMatch = (field: string, match: unknown, path = `match[0].${field}`): NullRow =>
  ofVirtualService(`http[0].${path}`, { http: [{ match, route: [backend] }] });
const matchFields = [
  ...['uri', 'scheme', 'method', 'authority', 'headers', 'withoutHeaders', 'queryParams', 'port', 'sourceLabels'],
  ...['sourceNamespace', 'gateways'],
];
const l4Fields = ['destinationSubnets', 'port', 'sourceLabels', 'gateways', 'sourceNamespace'];
const claim = '@request.auth.claims.groups';

const virtualServiceNulls: readonly NullRow[] = [
  ofVirtualService('gateways', { gateways: null, http: [{ route: [backend] }] }),
  httpMatch('', null, 'match'),
  ...matchFields.map((field) => httpMatch(field, [{ ignoreUriCase: true, [field]: null }])),
  ...['exact', 'prefix', 'regex'].flatMap((how) => [
    httpMatch(how, [{ uri: { [how]: null } }], `match[0].uri.${how}`),
    httpMatch(how, [{ headers: { [claim]: { [how]: null } } }], `match[0].headers["${claim}"].${how}`),
    httpMatch(how, [{ queryParams: { a: { [how]: null } } }], `match[0].queryParams.a.${how}`),
    httpMatch(how, [{ withoutHeaders: { a: { [how]: null } } }], `match[0].withoutHeaders.a.${how}`),
  ]),
  ofVirtualService('tcp[0].match', { tcp: [{ match: null, route: [backend] }] }),
  ...[...l4Fields, 'sourceSubnet'].map((field) =>
    ofVirtualService(`tcp[0].match[0].${field}`, { tcp: [{ match: [{ [field]: null }], route: [backend] }] }),
  ),
  ...l4Fields.map((field) =>
    ofVirtualService(`tls[0].match[0].${field}`, {
      tls: [{ match: [{ sniHosts: ['a.test'], [field]: null }], route: [backend] }],
    }),
  ),
];

const ofDestinationRule = (field: string, spec: object): NullRow => ({
  ...{ kind: 'DestinationRule', apiVersion: 'networking.istio.io/v1', field: `spec.${field}` },
  spec: { host: 'a.test', ...spec },
});
const simple = { loadBalancer: { simple: 'RANDOM' } };
const portLevel = (tls: unknown): object => ({ portLevelSettings: [{ port: { number: 80 }, ...simple, tls }] });

const clientTlsNulls: readonly NullRow[] = [
  ofDestinationRule('trafficPolicy.tls', { trafficPolicy: { ...simple, tls: null } }),
  ofDestinationRule('trafficPolicy.portLevelSettings[0].tls', { trafficPolicy: portLevel(null) }),
  ofDestinationRule('subsets[0].trafficPolicy.tls', {
    subsets: [{ name: 'v1', labels: { v: '1' }, trafficPolicy: { ...simple, tls: null } }],
  }),
  ...['credentialName', 'caCrl', 'caCertificates', 'subjectAltNames'].map((field) =>
    ofDestinationRule(`trafficPolicy.tls.${field}`, { trafficPolicy: { tls: { mode: 'SIMPLE', [field]: null } } }),
  ),
];

const mutualTls = { mode: 'MUTUAL', serverCertificate: '/c.pem', privateKey: '/k.pem', caCertificates: '/ca.pem' };
const ofGateway = (field: string, protocol: string, tls: unknown): NullRow => ({
  ...{ kind: 'Gateway', apiVersion: 'networking.istio.io/v1', field: `spec.servers[0].${field}` },
  spec: { selector: { a: 'b' }, servers: [{ port: { number: 443, name: 'a', protocol }, hosts: ['a.test'], tls }] },
});
const ofSidecar = (field: string, tls: unknown): NullRow => ({
  ...{ kind: 'Sidecar', apiVersion: 'networking.istio.io/v1', field: `spec.ingress[0].${field}` },
  spec: {
    ingress: [{ port: { number: 443, name: 'a', protocol: 'HTTPS' }, defaultEndpoint: '127.0.0.1:80', tls }],
  },
});
const clientChecks = ['subjectAltNames', 'verifyCertificateSpki', 'verifyCertificateHash', 'caCertCredentialName'];

const serverTlsNulls: readonly NullRow[] = [
  ofGateway('tls', 'HTTPS', null),
  ofGateway('tls', 'TCP', null),
  ofGateway('tls.mode', 'HTTPS', { mode: null, credentialName: 'a' }),
  ...['caCrl', ...clientChecks].map((field) => ofGateway(`tls.${field}`, 'HTTPS', { ...mutualTls, [field]: null })),
  ofGateway('tls.tlsCertificates[0].caCertificates', 'HTTPS', {
    ...{ mode: 'MUTUAL', caCertificates: '/ca.pem' },
    tlsCertificates: [{ serverCertificate: '/c.pem', privateKey: '/k.pem', caCertificates: null }],
  }),
  ofSidecar('tls', null),
  ofSidecar('tls.caCrl', { ...mutualTls, caCrl: null }),
];

const ofListener = (field: string, listener: object): NullRow => ({
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
const ofRoute = (kind: string, field: string, spec: object): NullRow => ({
  ...{ kind, apiVersion: 'gateway.networking.k8s.io/v1', field: `spec.${field}` },
  spec: { parentRefs: [{ name: 'a' }], rules: [{ backendRefs: [{ name: 'a', port: 80 }] }], ...spec },
});
const routeMatch = (kind: string, field: string, match: object): NullRow =>
  ofRoute(kind, `rules[0].matches[0].${field}`, { rules: [{ matches: [match] }] });

const gatewayApiNulls: readonly NullRow[] = [
  ofListener('hostname', { hostname: null }),
  ...['options', 'frontendValidation'].map((field) =>
    ofListener(`tls.${field}`, { tls: { certificateRefs: [{ name: 'a' }], [field]: null } }),
  ),
  ...['HTTPRoute', 'GRPCRoute'].flatMap((kind) => [
    ofRoute(kind, 'hostnames', { hostnames: null }),
    ofRoute(kind, 'parentRefs[0].sectionName', { parentRefs: [{ name: 'a', sectionName: null }] }),
    ofRoute(kind, 'parentRefs[0].port', { parentRefs: [{ name: 'a', port: null }] }),
    ofRoute(kind, 'rules[0].matches', { rules: [{ matches: null }] }),
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
