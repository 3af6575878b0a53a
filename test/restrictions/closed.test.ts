/** A restriction that is rejected at its first read closes exactly the workloads that it selects, until it is valid. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { SettingsFiles } from '../../src/discovery/config/files/settings-files.ts';
import { MeshConfigs } from '../../src/discovery/config/snapshots/mesh-configs.ts';
import { MeshState } from '../../src/discovery/push/contexts/mesh-state.ts';
import { readConfigFile } from '../../src/model/config/config-file.ts';
import { effectText } from '../../src/model/config/refused.ts';
import { defaultMeshConfig } from '../../src/model/mesh/mesh-config.ts';
import { peerModes } from '../../src/model/push-context/mutual-tls-mode.ts';
import type { PushContext } from '../../src/model/push-context/push-context.ts';

let root: string;
let directory: MeshConfigs;
let state: MeshState;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-closed-'));
  const settings = new SettingsFiles(() => {});
  directory = new MeshConfigs({ mesh: () => settings.mesh, domain: 'cluster.local' });
  state = new MeshState({ settings, meshConfigs: directory, domain: 'cluster.local', clusterId: 'Kubernetes' });
});

afterEach(() => rmSync(root, { recursive: true }));

async function read(files: Readonly<Record<string, string | undefined>>): Promise<PushContext> {
  for (const [name, text] of Object.entries(files)) {
    if (text === undefined) rmSync(join(root, name));
    else writeFileSync(join(root, name), text);
  }
  await directory.read([root]);
  state.computeServices();
  return state.publishContext({ forced: true, changedKeys: [] });
}

const workloads = {
  'shop/cart': { configNamespace: 'shop', labels: { app: 'cart' } },
  'shop/web': { configNamespace: 'shop', labels: { app: 'web' } },
  'bank/cart': { configNamespace: 'bank', labels: { app: 'cart' } },
} as const;
type Workload = keyof typeof workloads;
const all = Object.keys(workloads) as Workload[];
const shopWorkloads: Workload[] = ['shop/cart', 'shop/web'];

function policiesOf(context: PushContext, workload: Workload) {
  return context.policiesFor({ type: 'sidecar', ...workloads[workload] } as never);
}

/** Workloads that accept no request. */
const closedWorkloads = (context: PushContext): Workload[] =>
  all.filter((workload) =>
    policiesOf(context, workload).authorizationPolicies.some(
      ({ spec, annotations }) =>
        spec.action === 'DENY' &&
        annotations['istio.io/dry-run'] === undefined &&
        JSON.stringify(spec.rules) === '[{}]',
    ),
  );

/** Workloads that accept no plaintext. */
const strict = (context: PushContext): Workload[] =>
  all.filter((workload) => peerModes(policiesOf(context, workload).peerAuthentications).mode === 'STRICT');

/** Workloads that accept no token. */
const tokenless = (context: PushContext): Workload[] =>
  all.filter((workload) =>
    policiesOf(context, workload).requestAuthentications.some(({ spec }) =>
      spec.jwtRules.every(({ jwks }) => jwks === '{"keys":[]}'),
    ),
  );

const object = (kind: string, spec: unknown, metadata: object = {}, group = 'security'): string =>
  stringify({
    apiVersion: `${group}.istio.io/v1`,
    kind,
    metadata: { name: 'odd', namespace: 'shop', ...metadata },
    ...(spec === undefined ? {} : { spec }),
  });
const cart = { selector: { matchLabels: { app: 'cart' } } };
const cartOf = { workloadSelector: { labels: { app: 'cart' } } };
const invalidSpec = { rules: [{ from: [{ source: { principals: [''] } }] }] };

describe('an AuthorizationPolicy that is rejected at the first read', () => {
  const policy = (spec: unknown, metadata?: object): string => object('AuthorizationPolicy', spec, metadata);
  it.each<[string, string, Workload[]]>([
    ['its selector is readable', policy({ ...cart, ...invalidSpec }), ['shop/cart']],
    ['it has no selector', policy(invalidSpec), shopWorkloads],
    ['it is a DENY', policy({ ...cart, ...invalidSpec, action: 'DENY' }), ['shop/cart']],
    ['it is a CUSTOM without a provider', policy({ ...cart, action: 'CUSTOM', rules: [{}] }), ['shop/cart']],
    ['its action is misspelt', policy({ ...cart, action: 'deny', rules: [{}] }), ['shop/cart']],
    ['its selector is null', policy({ selector: null, rules: [{}] }), shopWorkloads],
    ['its selector is misspelt', policy({ selectors: cart.selector, rules: [{}] }), shopWorkloads],
    ['its selector has a wildcard', policy({ selector: { matchLabels: { app: '*' } } }), shopWorkloads],
    ['it has a selector and targets', policy({ ...cart, targetRefs: [{ kind: 'Service', name: 'a' }] }), shopWorkloads],
    [
      'its target has an unsupported kind',
      policy({ targetRef: { kind: 'Pod', name: 'a' }, rules: [{}] }),
      shopWorkloads,
    ],
    [
      'its target is in another namespace',
      policy({ targetRef: { kind: 'Service', name: 'a', namespace: 'bank' }, rules: [{}] }),
      shopWorkloads,
    ],
    ['it has no spec', policy(undefined), shopWorkloads],
    ['its spec is a string', policy('DENY'), shopWorkloads],
    ['its version is unknown', policy({ ...cart, rules: [{}] }).replace('/v1', '/v9'), ['shop/cart']],
    ['an annotation is not a string', policy({ ...cart, rules: [{}] }, { annotations: { a: 5 } }), ['shop/cart']],
    ['its name is invalid', policy({ ...cart, rules: [{}] }, { name: 'Not_A_Name' }), ['shop/cart']],
    ['it has no name', policy({ ...cart, rules: [{}] }, { name: undefined }), ['shop/cart']],
    [
      'its dry-run annotation is invalid',
      policy({ ...cart, rules: [{}] }, { annotations: { 'istio.io/dry-run': 'yes' } }),
      ['shop/cart'],
    ],
    ['its namespace is the root namespace', policy(invalidSpec, { namespace: 'istio-system' }), all],
    [
      'it has a selector in the root namespace',
      policy({ ...cart, ...invalidSpec }, { namespace: 'istio-system' }),
      ['shop/cart', 'bank/cart'],
    ],
    ['its namespace is not a string', policy(invalidSpec, { namespace: 5 }), all],
    ['its namespace is not a valid name', policy(invalidSpec, { namespace: 'Shop' }), all],
    ['its metadata are a list', policy(invalidSpec).replace(/metadata:\n.*\n.*\n/, 'metadata: [name, odd]\n'), all],
    [
      'its metadata are not indented',
      policy(invalidSpec).replace(/metadata:\n *(.*)\n *(.*)\n/, 'metadata:\n$1\n$2\n'),
      all,
    ],
    ['its metadata are misspelt', policy(invalidSpec).replace('metadata', 'metdata'), shopWorkloads],
    ['it has no apiVersion', policy({ ...cart, rules: [{}] }).replace(/apiVersion: .*\n/, ''), ['shop/cart']],
    [
      'its apiVersion is not a string',
      policy({ ...cart, rules: [{}] }).replace(/(apiVersion:) .*\n/, '$1 1\n'),
      ['shop/cart'],
    ],
    ['its apiVersion has no version', policy({ ...cart, rules: [{}] }).replace('/v1', ''), ['shop/cart']],
    ['its apiVersion has no group', policy({ ...cart, rules: [{}] }).replace('security.istio.io/', ''), ['shop/cart']],
    ['its group is misspelt', policy({ ...cart, rules: [{}] }).replace('istio', 'istoi'), ['shop/cart']],
    ['its group is short', policy({ ...cart, rules: [{}] }).replace('security.', ''), ['shop/cart']],
    ['its group is in capitals', policy({ ...cart, rules: [{}] }).replace('istio', 'Istio'), ['shop/cart']],
    [
      'its group belongs to another company',
      policy({ ...cart, rules: [{}] }).replace('istio.io', 'istio.com'),
      ['shop/cart'],
    ],
    [
      'its group is a different group of Istio',
      object('AuthorizationPolicy', { rules: [{}] }, {}, 'networking'),
      shopWorkloads,
    ],
    ['its kind is in the wrong case', policy({ ...cart, rules: [{}] }).replace('nPolicy', 'npolicy'), ['shop/cart']],
    ['its kind is misspelt', policy({ ...cart, rules: [{}] }).replace('Policy', 'Polcy'), ['shop/cart']],
    [
      'its kind and its group are misspelt',
      policy({ rules: [{}] })
        .replace('Policy', 'Polcy')
        .replace('istio', 'isto'),
      shopWorkloads,
    ],
    ['its namespace is misspelt', policy({ ...cart, rules: [{}] }).replace('namespace:', 'namspace:'), ['shop/cart']],
    [
      'its namespace is misspelt, and it is invalid YAML',
      `${policy({ rules: [{}] }).replace('space:', 'spcae:')}  a: b: c\n`,
      shopWorkloads,
    ],
    ['its name is misspelt', policy({ ...cart, rules: [{}] }).replace(' name:', ' nmae:'), ['shop/cart']],
    ['it has no namespace', policy(invalidSpec, { namespace: undefined }), []],
    [
      'it is in a List',
      stringify({
        kind: 'List',
        apiVersion: 'v1',
        items: [
          JSON.parse(
            JSON.stringify({
              apiVersion: 'security.istio.io/v1',
              kind: 'AuthorizationPolicy',
              metadata: { name: 'a', namespace: 'shop' },
              spec: { ...cart, ...invalidSpec },
            }),
          ),
        ],
      }),
      ['shop/cart'],
    ],
    ['the YAML after its metadata is invalid', `${policy({ ...cart, rules: [{}] })}  a: b: c\n`, shopWorkloads],
    // AUDIT restricts nothing.
    ['its action is AUDIT', policy({ ...invalidSpec, action: 'AUDIT' }), []],
    ['its action is AUDIT, misspelt', policy({ ...invalidSpec, action: 'audit' }), []],
    ['it is a dry run', policy(invalidSpec, { annotations: { 'istio.io/dry-run': 'true' } }), []],
    ['its group belongs to another product', policy(invalidSpec).replace('security.istio.io', 'policy.linkerd.io'), []],
    [
      'its group belongs to another product, and it is invalid YAML',
      `${policy(invalidSpec).replace('security.istio.io', 'policy.linkerd.io')}  a: b: c\n`,
      [],
    ],
    [
      'its group is that of an old Istio version',
      policy(invalidSpec).replace('security.istio.io', 'rbac.istio.io'),
      [],
    ],
  ])('the workloads that an AuthorizationPolicy closes are $2 if %s', async (_, text, expected) => {
    expect(closedWorkloads(await read({ 'a.yaml': text }))).toEqual(expected);
  });
});

describe('a PeerAuthentication that is rejected at the first read', () => {
  const peers = (spec: unknown, metadata?: object): string => object('PeerAuthentication', spec, metadata);
  const lenient = (name: string, spec: object = {}): string =>
    peers({ mtls: { mode: 'PERMISSIVE' }, ...spec }, { name });
  const mode = { mtls: { mode: 'strict' } };
  it.each<[string, string, Workload[]]>([
    ['its selector is readable', peers({ ...cart, ...mode }), ['shop/cart']],
    ['it has no selector', peers(mode), shopWorkloads],
    ['its selector is null', peers({ selector: null, ...mode }), shopWorkloads],
    ['mtls is null', peers({ mtls: null }), shopWorkloads],
    ['mtls is misspelt', peers({ mTLS: { mode: 'STRICT' } }), shopWorkloads],
    ['a field is unknown', peers({ mtls: { mode: 'PERMISSIVE' }, more: 1 }), shopWorkloads],
    ['its port is invalid', peers({ ...cart, portLevelMtls: { http: { mode: 'STRICT' } } }), ['shop/cart']],
    ['it has ports and no selector', peers({ portLevelMtls: { '80': { mode: 'DISABLE' } } }), shopWorkloads],
    ['its namespace is the root namespace', peers(mode, { namespace: 'istio-system' }), all],
    ['its namespace is unreadable', peers(mode, { namespace: 'Shop' }), all],
    [
      'its selector is unreadable, and another policy applies to the whole namespace',
      `${lenient('an-older-one')}---\n${peers({ selector: 5, ...mode })}`,
      shopWorkloads,
    ],
    [
      'another policy is valid and applies to single workloads',
      `${lenient('web', { selector: { matchLabels: { app: 'web' } } })}---\n${peers(mode)}`,
      ['shop/cart'],
    ],
    ['an older valid policy of its kind takes precedence', `${lenient('an-older-one')}---\n${peers(mode)}`, []],
  ])('the workloads for which a PeerAuthentication enforces mutual TLS are $2 if %s', async (_, text, expected) => {
    expect(strict(await read({ 'a.yaml': text }))).toEqual(expected);
  });

  it('a PeerAuthentication keeps its readable modes', async () => {
    const portLevelMtls = { '80': { mode: 'DISABLE' }, '81': { mode: 'strict' }, '82': null };
    const context = await read({ 'a.yaml': peers({ ...cart, mtls: { mode: 'PERMISSIVE' }, portLevelMtls }) });
    expect(peerModes(policiesOf(context, 'shop/cart').peerAuthentications)).toEqual({
      mode: 'PERMISSIVE',
      ports: new Map([
        [80, 'DISABLE'],
        [81, 'STRICT'],
        [82, 'STRICT'],
      ]),
    });
  });
});

describe('a RequestAuthentication that is rejected at the first read', () => {
  const tokens = (spec: unknown, metadata?: object): string => object('RequestAuthentication', spec, metadata);
  const rule = { issuer: 'https://id.test', jwks: 'no keys' };
  const rulesOf = async (spec: unknown): Promise<unknown> =>
    policiesOf(await read({ 'a.yaml': tokens(spec) }), 'shop/cart').requestAuthentications[0]?.spec.jwtRules;

  it.each<[string, string, Workload[]]>([
    ['its selector is readable', tokens({ ...cart, jwtRules: [rule] }), ['shop/cart']],
    ['it has no selector', tokens({ jwtRules: [rule] }), shopWorkloads],
    ['its rules are misspelt', tokens({ ...cart, jwtRule: [rule] }), ['shop/cart']],
    ['its rules are null', tokens({ ...cart, jwtRules: null }), ['shop/cart']],
    ['its namespace is the root namespace', tokens({ jwtRules: [rule] }, { namespace: 'istio-system' }), all],
  ])('the workloads for which a RequestAuthentication rejects all tokens are $2 if %s', async (_, text, expected) => {
    expect(tokenless(await read({ 'a.yaml': text }))).toEqual(expected);
  });

  it('a RequestAuthentication reads tokens at the configured locations, or at the default ones if they are unreadable', async () => {
    const defaultHeaders = [{ name: 'Authorization', prefix: 'Bearer ' }];
    expect(await rulesOf({ jwtRules: [{ ...rule, fromHeaders: [{ name: 'x-token' }] }] })).toMatchObject([
      { issuer: 'https://id.test', fromHeaders: [{ name: 'x-token' }], fromParams: [], fromCookies: [] },
    ]);
    expect(
      await rulesOf({ jwtRules: [{ ...rule, fromHeaders: [{ name: 'x-token' }, { name: 'no header' }] }] }),
    ).toMatchObject([{ fromHeaders: [{ name: 'x-token' }, ...defaultHeaders], fromParams: ['access_token'] }]);
    expect(await rulesOf({ jwtRules: [null] })).toMatchObject([{ issuer: '', fromHeaders: defaultHeaders }]);
    expect(await rulesOf({ jwtRules: [{ ...rule, presence: 'required' }] })).toMatchObject([{ presence: 'REQUIRED' }]);
    expect(await rulesOf({ jwtRules: [{ ...rule, presence: 'OPTIONAL' }] })).not.toMatchObject([
      { presence: 'REQUIRED' },
    ]);
  });
});

describe('an object with TLS settings that is rejected at the first read', () => {
  it('a Sidecar with TLS in its ingress blocks traffic to its workloads, and one without it blocks nothing', async () => {
    const sidecar = (tls: object): string =>
      object(
        'Sidecar',
        {
          workloadSelector: { labels: { app: 'cart' } },
          ingress: [{ port: { number: 0, name: 'https', protocol: 'HTTPS' }, defaultEndpoint: '127.0.0.1:80', ...tls }],
        },
        {},
        'networking',
      );
    expect(closedWorkloads(await read({ 'a.yaml': sidecar({ tls: { mode: 'MUTUAL' } }) }))).toEqual(['shop/cart']);
    expect(closedWorkloads(await read({ 'a.yaml': sidecar({ tls: null }) }))).toEqual(['shop/cart']);
    expect(closedWorkloads(await read({ 'a.yaml': sidecar({}) }))).toEqual([]);
  });

  it('a Sidecar of the root namespace closes the workloads to which it applies, except those with their own Sidecar', async () => {
    const tls = { ingress: [{ port: { number: 0 }, tls: { mode: 'MUTUAL' } }] };
    const sidecar = (metadata: object, spec: object = { egress: [{ hosts: ['./*'] }] }): string =>
      object('Sidecar', spec, metadata, 'networking');
    const invalidSidecar = sidecar({ namespace: 'istio-system' }, tls);
    const selectingSpec = { workloadSelector: { labels: { app: 'web' } }, egress: [{ hosts: ['./*'] }] };
    expect(closedWorkloads(await read({ 'a.yaml': invalidSidecar }))).toEqual(all);
    expect(closedWorkloads(await read({ 'b.yaml': sidecar({}, selectingSpec) }))).toEqual(['shop/cart', 'bank/cart']);
    expect(closedWorkloads(await read({ 'b.yaml': sidecar({}) }))).toEqual(['bank/cart']);
    expect(closedWorkloads(await read({ 'b.yaml': undefined }))).toEqual(all);
    // A Sidecar with a selector applies in its own namespace only.
    expect(
      closedWorkloads(await read({ 'a.yaml': sidecar({ namespace: 'istio-system' }, { ...cartOf, ...tls }) })),
    ).toEqual([]);
    // A narrower Sidecar of the same namespace replaces it, too, unless its selector is unreadable.
    expect(
      closedWorkloads(await read({ 'a.yaml': sidecar({}, tls), 'b.yaml': sidecar({ name: 'web' }, selectingSpec) })),
    ).toEqual(['shop/cart']);
    expect(closedWorkloads(await read({ 'a.yaml': sidecar({}, { workloadSelector: 5, ...tls }) }))).toEqual(
      shopWorkloads,
    );
    expect(closedWorkloads(await read({ 'a.yaml': sidecar({ namespace: 'Shop' }, tls) }))).toEqual(all);
  });

  it.each([
    ['its kind is misspelt', 'kind: Sidecar', 'kind: Sidcar'],
    ['its kind is in the wrong case', 'kind: Sidecar', 'kind: sideCar'],
    ['its group is misspelt', 'networking.istio.io', 'networking.istoi.io'],
    ['its group is short', 'networking.istio.io', 'istio.io'],
  ])('a Sidecar counts as rejected if %s', async (_, from, to) => {
    const spec = { ingress: [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, tls: { mode: 'SIMPLE' } }] };
    expect(
      closedWorkloads(await read({ 'a.yaml': object('Sidecar', spec, {}, 'networking').replace(from, to) })),
    ).toEqual(shopWorkloads);
  });

  it.each([
    ['its kind is misspelt', 'kind: DestinationRule', 'kind: DestinationRul'],
    ['its group is a different group of Istio', 'networking.istio.io', 'security.istio.io'],
  ])('a DestinationRule counts as rejected if %s', async (_, from, to) => {
    await read({ 'a.yaml': rule({ trafficPolicy: { tls: { mode: 'SIMPLE' } } }).replace(from, to) });
    expect(directory.snapshot.byKey.get('DestinationRule/shop/odd')?.spec).toEqual({
      host: 'db.test',
      trafficPolicy: { tls: { mode: 'SIMPLE' } },
    });
  });

  it('a rejected object is reported with its intended kind', () => {
    const text = rule({}).replace('DestinationRule', 'DestinationRul');
    const [problem] = readConfigFile('a.yaml', text, { creationTimestamp: 0 }).problems;
    expect(problem).toMatchObject({
      ...{ severity: 'error', code: 'KIND_UNKNOWN', near: 'networking.istio.io/v1 DestinationRule' },
    });
    // Kinds of another project are ignored.
    const foreignText = text.replace('networking.istio.io', 'networking.example.com');
    expect(readConfigFile('a.yaml', foreignText, { creationTimestamp: 0 }).problems[0]?.severity).toBe('warning');
  });

  it.each(['istio-system', 'shop', 'Shop'])('a Sidecar of namespace %s closes no gateway', async (namespace) => {
    const spec = { ingress: [{ port: { number: 0 }, tls: { mode: 'MUTUAL' } }] };
    const context = await read({ 'a.yaml': object('Sidecar', spec, { namespace }, 'networking') });
    expect(closedWorkloads(context)).toContain('shop/cart');
    const router = { type: 'router', configNamespace: 'shop', labels: { app: 'cart' } };
    expect(context.policiesFor(router as never).authorizationPolicies).toEqual([]);
  });

  it.each([
    ['a misspelt field', { ingress: [{ port: { number: 80 }, tsl: { mode: 'MUTUAL' } }] }],
    ['a misspelt list', { ingres: [{ port: { number: 80 }, tls: { mode: 'MUTUAL' } }] }],
    ['a misspelt list, and a field in the wrong case', { ingresses: { TLS: null } }],
  ])('a Sidecar closes its workloads if its TLS settings are in %s', async (_, spec) => {
    expect(closedWorkloads(await read({ 'a.yaml': object('Sidecar', spec, {}, 'networking') }))).toEqual(shopWorkloads);
  });

  const rule = (spec: object): string => object('DestinationRule', { host: 'db.test', ...spec }, {}, 'networking');
  const policyOf = async (spec: object): Promise<unknown> =>
    (await read({ 'a.yaml': rule(spec) })) && directory.snapshot.byKey.get('DestinationRule/shop/odd')?.spec;
  it.each<[string, object, unknown]>([
    [
      'the mode is unknown',
      { trafficPolicy: { tls: { mode: 'TLS' } } },
      { trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } },
    ],
    ['the TLS is null', { trafficPolicy: { tls: null } }, { trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } }],
    [
      'its credentialName is null',
      { trafficPolicy: { tls: { mode: 'SIMPLE', credentialName: null } } },
      { trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } },
    ],
    [
      'the field is misspelt',
      { trafficPolicy: { Tls: { mode: 'SIMPLE' } } },
      { trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } },
    ],
    [
      'another field is invalid',
      { trafficPolicy: { tls: { mode: 'SIMPLE', sni: 'db.test' }, connectionPool: 5 } },
      { trafficPolicy: { tls: { mode: 'SIMPLE', sni: 'db.test' } } },
    ],
    [
      'the TLS is of a port',
      { trafficPolicy: { portLevelSettings: [{ port: { number: 443 }, tls: { mode: 'simple' } }] } },
      { trafficPolicy: { portLevelSettings: [{ port: { number: 443 }, tls: { mode: 'ISTIO_MUTUAL' } }] } },
    ],
    [
      'the TLS is of an unreadable port',
      { trafficPolicy: { portLevelSettings: [{ port: 443, tls: { mode: 'SIMPLE' } }] } },
      { trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } },
    ],
    [
      'the TLS is of a subset',
      { subsets: [{ name: 'v1', labels: { v: '1' }, trafficPolicy: { tls: { mode: 'MUTUAL' } } }] },
      { subsets: [{ name: 'v1', labels: { v: '1' }, trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } }] },
    ],
    [
      'the field that contains it is misspelt',
      { trafficPolicyy: { tls: { mode: 'SIMPLE', sni: 'db.test' } } },
      { trafficPolicy: { tls: { mode: 'SIMPLE', sni: 'db.test' } } },
    ],
    [
      'the field that contains it is unknown',
      { novelties: [{ tls: { mode: 'SIMPLE' } }], trafficPolicy: { tls: { mode: 'DISABLE' } }, subsets: 5 },
      { trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } },
    ],
    [
      'the list of subsets is misspelt',
      { subset: [{ name: 'v1', trafficPolicy: { tls: { mode: 'SIMPLE' } } }] },
      { subsets: [{ name: 'v1', labels: {}, trafficPolicy: { tls: { mode: 'SIMPLE' } } }] },
    ],
    [
      'the list of ports is misspelt',
      { trafficPolicy: { portLevelSetings: [{ port: { number: 443 }, tls: {} }], tls: { mode: 'DISABLE' } } },
      { trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } },
    ],
    [
      'the host is misspelt',
      { host: undefined, hots: 'db.test', trafficPolicy: { tls: { mode: 'SIMPLE' } } },
      { trafficPolicy: { tls: { mode: 'SIMPLE' } } },
    ],
    ['it has no TLS', { trafficPolicy: { connectionPool: 5 } }, undefined],
    ['it disables TLS in a misspelt field', { trafficPolicyy: { tls: { mode: 'DISABLE' } } }, undefined],
    ['it disables TLS', { trafficPolicy: { tls: { mode: 'DISABLE' }, connectionPool: 5 } }, undefined],
  ])(
    'a rejected DestinationRule secures connections, or is ignored if it requires no TLS: %s',
    async (_, spec, expected) => {
      expect(await policyOf(spec)).toEqual(
        expected === undefined ? undefined : { host: 'db.test', ...(expected as object) },
      );
    },
  );
});

it('a DestinationRule whose namespace is unreadable secures connections from all namespaces', async () => {
  const host = 'db.test';
  const entry = {
    ...{ hosts: [host], location: 'MESH_EXTERNAL', resolution: 'DNS' },
    ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
  };
  const tls = { mode: 'SIMPLE', sni: host };
  const rule = (metadata: object): string =>
    object(
      'DestinationRule',
      { host, exportTo: ['.'], workloadSelector: { matchLabels: { app: 'cart' } }, trafficPolicy: { tls } },
      metadata,
      'networking',
    );
  const modes = async (text: string): Promise<unknown[]> => {
    const context = await read({ 'a.yaml': `${object('ServiceEntry', entry, {}, 'networking')}---\n${text}` });
    return all.map((workload) => {
      const scope = context.sidecarScopeFor({ type: 'sidecar', ...workloads[workload] } as never);
      const service = scope.serviceByHostname(host)!;
      return context.destinationRuleFor(scope.namespace, service)?.config.spec.trafficPolicy?.tls?.mode;
    });
  };
  expect(await modes(rule({ namespace: 'Shop' }))).toEqual(['SIMPLE', 'SIMPLE', 'SIMPLE']);
});

describe('a BackendTLSPolicy that is rejected at the first read', () => {
  const service = { group: '', kind: 'Service', name: 'web' };
  const validation = { hostname: 'web.test', wellKnownCACertificates: 'System' };
  const policy = (spec: unknown, metadata: object = {}): string =>
    object('BackendTLSPolicy', spec, metadata).replace('security.istio.io', 'gateway.networking.k8s.io');
  const validSpec = { targetRefs: [service], validation };
  const origins = ['shop/web:http', 'shop/web:admin', 'shop/api:http', 'bank/web:http'];
  /** Ports to which gateways cannot connect, because a policy without usable roots applies. Ports without a policy use plaintext. */
  const refusedPorts = (context: PushContext): string[] =>
    origins.filter((origin) => {
      const [namespace, name, port] = origin.split(/[/:]/) as [string, string, string];
      const tls = context.backendTls.settingsFor({ origin: { kind: 'Service', namespace, name } }, port);
      return tls !== undefined && tls.roots === undefined;
    });
  const webPorts = ['shop/web:http', 'shop/web:admin'];
  const shopPorts = [...webPorts, 'shop/api:http'];

  it.each<[string, string, string[]]>([
    ['it has no validation', policy({ targetRefs: [service] }), webPorts],
    ['its validation is null', policy({ targetRefs: [service], validation: null }), webPorts],
    ['its hostname is invalid', policy({ ...validSpec, validation: { ...validation, hostname: '*' } }), webPorts],
    [
      'it has two kinds of authorities',
      policy({ ...validSpec, validation: { ...validation, caCertificateRefs: [{}] } }),
      webPorts,
    ],
    [
      'a field of its validation is misspelt',
      policy({ ...validSpec, validation: { ...validation, subjectAltName: [] } }),
      webPorts,
    ],
    [
      'a field of its validation is unknown',
      policy({ ...validSpec, validation: { ...validation, crl: 'list' } }),
      webPorts,
    ],
    ['a field of it is unknown', policy({ ...validSpec, minTLSVersion: '1.3' }), webPorts],
    ['its version is unknown', policy(validSpec).replace('/v1', '/v9'), webPorts],
    ['its kind is misspelt', policy(validSpec).replace('TLSPolicy', 'TLSPolcy'), webPorts],
    ['its kind is in the wrong case', policy(validSpec).replace('TLSPolicy', 'TlsPolicy'), webPorts],
    ['its group is misspelt', policy(validSpec).replace('gateway', 'gatway'), webPorts],
    ['it has no group', policy(validSpec).replace('gateway.networking.k8s.io/', ''), webPorts],
    ['its target is a port', policy({ targetRefs: [{ ...service, sectionName: 'http' }] }), ['shop/web:http']],
    ['its port is invalid', policy({ ...validSpec, targetRefs: [{ ...service, sectionName: 5 }] }), webPorts],
    ['its target has no group', policy({ ...validSpec, targetRefs: [{ kind: 'Service', name: 'web' }] }), webPorts],
    ['its target is in lower case', policy({ ...validSpec, targetRefs: [{ ...service, kind: 'service' }] }), webPorts],
    ['its target has a namespace', policy({ ...validSpec, targetRefs: [{ ...service, namespace: 'bank' }] }), webPorts],
    ['its targets have another field name', policy({ targetRef: service, validation }), webPorts],
    ['one of its targets is unreadable', policy({ ...validSpec, targetRefs: [service, { name: 5 }] }), shopPorts],
    ['it has no targets', policy({ validation }), shopPorts],
    ['it has no spec', policy(undefined), shopPorts],
    ['it is invalid YAML', `${policy(validSpec)}  a: b: c\n`, shopPorts],
    [
      'its namespace is unreadable',
      policy({ targetRefs: [service] }, { namespace: 'Shop' }),
      [...webPorts, 'bank/web:http'],
    ],
    ['its namespace and its targets are unreadable', policy({ validation }, { namespace: 'Shop' }), origins],
    // Not an object of the mesh.
    [
      'its API group belongs to another project',
      policy(validSpec).replace('gateway.networking.k8s.io', 'example.com'),
      [],
    ],
    ['its kind is a different kind of the group', policy({}).replace('BackendTLSPolicy', 'BackendLBPolicy'), []],
  ])('the ports to which a BackendTLSPolicy fails connections are $2 if %s', async (_, text, expected) => {
    expect(refusedPorts(await read({ 'a.yaml': text }))).toEqual(expected);
  });

  it('a BackendTLSPolicy yields to an earlier policy for the target, or to any policy for the target if its own targets are unreadable', async () => {
    const aged = (spec: unknown, name: string, year: number): string =>
      policy(spec, { name, creationTimestamp: `${year}-01-01T00:00:00Z` });
    const newer = aged({ targetRefs: [service] }, 'second', 2021);
    expect(refusedPorts(await read({ 'a.yaml': aged(validSpec, 'first', 2022), 'b.yaml': newer }))).toEqual(webPorts);
    expect(refusedPorts(await read({ 'a.yaml': aged(validSpec, 'first', 2020) }))).toEqual([]);
    expect(refusedPorts(await read({ 'b.yaml': policy({ validation }) }))).toEqual(['shop/api:http']);
  });

  it('a BackendTLSPolicy fails connections until it is corrected, and is reported', async () => {
    writeFileSync(join(root, 'a.yaml'), policy({ targetRefs: [service] }));
    const [problem] = (await directory.read([root])).problems;
    expect(problem).toMatchObject({ severity: 'error', field: 'spec.validation' });
    expect(problem?.closed).toBe('requests from gateways to Service web of namespace shop get 503');
    const corrected = await read({ 'a.yaml': policy(validSpec) });
    expect(
      corrected.backendTls.settingsFor({ origin: { kind: 'Service', namespace: 'shop', name: 'web' } }, 'http'),
    ).toMatchObject({ roots: 'system' });
  });
});

describe('closed workloads', () => {
  const validPolicy = object('AuthorizationPolicy', { ...cart, rules: [{}] });
  const invalidPolicy = object('AuthorizationPolicy', { ...cart, ...invalidSpec });
  const brokenYaml = `${validPolicy}  a: b: c\n`;
  const nameless = object('AuthorizationPolicy', { rules: [{}] }, { name: undefined });
  const otherPolicy = object('AuthorizationPolicy', { rules: [{}] }, { namespace: 'bank', name: 'fine' });

  it('a closed workload opens when the object is repaired, and when it is deleted', async () => {
    expect(closedWorkloads(await read({ 'a.yaml': invalidPolicy }))).toEqual(['shop/cart']);
    expect(closedWorkloads(await read({ 'a.yaml': validPolicy }))).toEqual([]);
    expect(closedWorkloads(await read({ 'b.yaml': invalidPolicy.replace('odd', 'other') }))).toEqual(['shop/cart']);
    expect(closedWorkloads(await read({ 'b.yaml': undefined }))).toEqual([]);
    expect(closedWorkloads(await read({ 'b.yaml': invalidPolicy.replace('odd', 'other') }))).toEqual(['shop/cart']);
    expect(closedWorkloads(await read({ 'b.yaml': otherPolicy }))).toEqual([]);
  });

  it.each([
    ['invalid', invalidPolicy],
    ['invalid YAML', brokenYaml],
    ['invalid YAML with a misplaced namespace', brokenYaml.replace('namespace: shop', 'x: y: z')],
    ['without a name', nameless],
    ['with an invalid namespace', validPolicy.replace('namespace: shop', 'namespace: Shop')],
    ['not recognizable', '{{ .Values.policy }'],
    ['without an apiVersion', validPolicy.replace(/apiVersion: .*\n/, '')],
    ['with a misspelt group', validPolicy.replace('istio', 'istoi')],
    ['with a kind in the wrong case', validPolicy.replace('nPolicy', 'npolicy')],
    ['with metadata that are a list', validPolicy.replace(/metadata:\n.*\n.*\n/, 'metadata: [name, odd]\n')],
  ])(
    'a workload is not closed if an earlier version of the object is valid and the new version is %s',
    async (_, text) => {
      await read({ 'a.yaml': validPolicy });
      const context = await read({ 'a.yaml': text });
      expect(closedWorkloads(context)).toEqual([]);
      expect(policiesOf(context, 'shop/cart').authorizationPolicies).toHaveLength(1);
    },
  );

  it('a closed workload stays closed when the object becomes unrecognizable', async () => {
    await read({ 'a.yaml': invalidPolicy });
    expect(closedWorkloads(await read({ 'a.yaml': '{{ .Values.policy }' }))).toEqual(['shop/cart']);
    expect(closedWorkloads(await read({ 'a.yaml': validPolicy }))).toEqual([]);
  });

  it.each([
    ['open if the object is valid in an earlier file', { 'a.yaml': validPolicy, 'b.yaml': invalidPolicy }, []],
    [
      'closed if the object is valid in a later file',
      { 'a.yaml': invalidPolicy, 'b.yaml': validPolicy },
      ['shop/cart'],
    ],
    [
      'closed if the object is valid below in the same file',
      { 'a.yaml': `${invalidPolicy}---\n${validPolicy}` },
      ['shop/cart'],
    ],
    ['open if the object is valid above in the same file', { 'a.yaml': `${validPolicy}---\n${invalidPolicy}` }, []],
  ] as const)(
    'of two versions of a policy, the first in file order applies: the workload is %s',
    async (_, files, expected) => {
      expect(closedWorkloads(await read(files))).toEqual(expected);
    },
  );

  it('a closed workload stays closed when the later file changes, and opens when the rejected file is removed', async () => {
    expect(closedWorkloads(await read({ 'a.yaml': invalidPolicy, 'b.yaml': validPolicy }))).toEqual(['shop/cart']);
    expect(closedWorkloads(await read({ 'b.yaml': validPolicy.replace('app: cart', 'app: web') }))).toEqual([
      'shop/cart',
    ]);
    expect(closedWorkloads(await read({ 'a.yaml': undefined }))).toEqual([]);
  });

  it('a closed workload depends on the earlier version of the first file, not on a later file', async () => {
    const first = object('AuthorizationPolicy', { ...cart, action: 'DENY', rules: [{}] });
    expect(closedWorkloads(await read({ 'a.yaml': first, 'b.yaml': validPolicy }))).toEqual(['shop/cart']);
    const context = await read({ 'a.yaml': invalidPolicy });
    expect(closedWorkloads(context)).toEqual(['shop/cart']);
    expect(directory.snapshot.placeholders).toEqual([]);
    expect(closedWorkloads(await read({ 'a.yaml': validPolicy }))).toEqual([]);
  });

  it('a workload is closed when an invalid version of its policy is added in a file that precedes the valid one', async () => {
    expect(closedWorkloads(await read({ 'b.yaml': validPolicy }))).toEqual([]);
    expect(closedWorkloads(await read({ 'a.yaml': invalidPolicy }))).toEqual(['shop/cart']);
  });

  it.each([
    ['closed if a later source has a valid version', [invalidPolicy, validPolicy], ['shop/cart']],
    ['open if an earlier source has a valid version', [validPolicy, invalidPolicy], []],
  ] as const)(
    'of an object in two sources, the version in the first source applies: the workload is %s',
    async (_, texts, expected) => {
      const [first, second] = [join(root, 'first'), join(root, 'second')];
      for (const [index, path] of [first, second].entries()) {
        mkdirSync(path);
        writeFileSync(join(path, 'a.yaml'), texts[index]!);
      }
      await directory.read([first, second]);
      state.computeServices();
      expect(closedWorkloads(state.publishContext({ forced: true, changedKeys: [] }))).toEqual(expected);
      // An object that was valid in the first source stays.
      writeFileSync(join(first, 'a.yaml'), validPolicy);
      await directory.read([first, second]);
      writeFileSync(join(first, 'a.yaml'), invalidPolicy);
      await directory.read([first, second]);
      expect(directory.snapshot.placeholders).toEqual([]);
    },
  );

  it('the report names the whole mesh for an object in the root namespace', () => {
    const text = object('AuthorizationPolicy', invalidSpec, { namespace: 'istio-system' });
    const [standIn] = readConfigFile('a.yaml', text, { creationTimestamp: 0 }).standIns;
    expect(effectText(standIn!, 'istio-system')).toBe('every request to the workloads of the whole mesh is denied');
    expect(effectText(standIn!, 'mesh-root')).toBe(
      'every request to the workloads of namespace istio-system is denied',
    );
  });

  it('the closed workloads change with the root namespace of the mesh configuration', async () => {
    const configs = new MeshConfigs({ mesh: () => ({ ...defaultMeshConfig, rootNamespace: 'shop' }), domain: 'x' });
    writeFileSync(join(root, 'a.yaml'), object('AuthorizationPolicy', invalidSpec));
    const reading = await configs.read([root]);
    expect(reading.problems[0]?.closed).toBe('every request to the workloads of the whole mesh is denied');
  });

  it("a closed workload is always in the namespace of the object, regardless of the object's content", async () => {
    const hostile = [
      { ...invalidSpec, selector: { matchLabels: {} }, namespace: 'bank' },
      {
        ...invalidSpec,
        targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'g', namespace: 'bank' }],
      },
      { ...invalidSpec, exportTo: ['*'] },
      { ...invalidSpec, selector: { matchLabels: { 'istio.io/rev': '__proto__' } }, __proto__: 5 },
    ];
    const documents = ['AuthorizationPolicy', 'PeerAuthentication', 'RequestAuthentication', 'Sidecar'].flatMap(
      (kind) =>
        hostile.map((spec, index) =>
          object(kind, { ...spec, ingress: [{ tls: {} }], mtls: null, jwtRules: null }, { name: `odd-${index}` }),
        ),
    );
    const context = await read({ 'a.yaml': documents.join('---\n') });
    expect(closedWorkloads(context)).toEqual(shopWorkloads);
    expect(strict(context)).toEqual(shopWorkloads);
    expect(tokenless(context)).toEqual(shopWorkloads);
  });

  it('a rejected object closes no workload of another namespace with valid objects', async () => {
    const contextBefore = await read({ 'b.yaml': otherPolicy });
    const policies = policiesOf(contextBefore, 'bank/cart');
    expect(policiesOf(await read({ 'a.yaml': invalidPolicy }), 'bank/cart')).toBe(policies);
  });

  it('a closed workload is reported with the error, except while the last valid version applies', async () => {
    writeFileSync(join(root, 'a.yaml'), invalidPolicy);
    const closedFor = async (): Promise<unknown> => {
      const reading = await directory.read([root]);
      return reading.problems.map((problem) => problem.closed);
    };
    expect(await closedFor()).toEqual(['every request to the workloads of namespace shop with app=cart is denied']);
    writeFileSync(join(root, 'a.yaml'), validPolicy);
    await directory.read([root]);
    writeFileSync(join(root, 'a.yaml'), invalidPolicy);
    expect(await closedFor()).toEqual([undefined]);
  });
});
