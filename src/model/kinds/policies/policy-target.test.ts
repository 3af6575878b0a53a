/** What policies are attached to: one that nothing carries out is refused, or told to hold nowhere. */
import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { type KindName, kinds } from '../index.ts';

const specs = {
  AuthorizationPolicy: {},
  RequestAuthentication: {},
  Telemetry: {},
  WasmPlugin: { url: 'oci://a' },
  EnvoyFilter: { configPatches: [{ applyTo: 'CLUSTER', patch: { operation: 'REMOVE' } }] },
} as const satisfies Partial<Record<KindName, object>>;
const names = Object.keys(specs) as (keyof typeof specs)[];

function errorsOf(kind: keyof typeof specs, scope: object): string[] {
  const decoded = kinds[kind].decode({ ...specs[kind], ...scope }, 'shop');
  return E.isLeft(decoded) ? decoded.left.map(({ path, message }) => `${path}: ${message}`) : [];
}

function warnings(kind: keyof typeof specs, scope: object): string[] {
  const decoded = kinds[kind].decode({ ...specs[kind], ...scope }, 'shop');
  if (E.isLeft(decoded)) throw new Error(JSON.stringify(decoded.left));
  return (kinds[kind].warnings as (spec: unknown) => readonly { path: string; message: string }[])(decoded.right)
    .filter(({ path }) => path.startsWith('targetRefs'))
    .map(({ path, message }) => `${path}: ${message}`);
}

const api = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'front' };

describe.each(names)('a target of %s', (kind) => {
  it.each([
    [
      'a kind that nobody attaches policies to',
      { kind: 'Deployment', group: 'apps', name: 'web' },
      'a Deployment of apps',
    ],
    ['a kind in lower case', { ...api, kind: 'gateway' }, 'not a gateway of gateway'],
    ['a Gateway without a group', { kind: 'Gateway', name: 'front' }, "a Gateway of Kubernetes' core group"],
    ['a group that is misspelt', { ...api, group: 'gateway.networking.k8s.IO' }, 'not a Gateway of'],
    ['a Service of another group', { group: 'apps', kind: 'Service', name: 'web' }, 'not a Service of apps'],
    ['a Pod', { kind: 'Pod', name: 'web' }, 'not a Pod of'],
  ])('is refused when it is %s', (_, reference, fragment) => {
    expect(errorsOf(kind, { targetRef: reference })).toEqual([expect.stringMatching(`^targetRef: .*${fragment}`)]);
    expect(errorsOf(kind, { targetRefs: [api, reference] })).toEqual([
      expect.stringMatching(`^targetRefs\\[1\\]: .*${fragment}`),
    ]);
  });

  it("is refused when it has a namespace, even the object's own, or no name", () => {
    expect(errorsOf(kind, { targetRef: { ...api, namespace: 'other' } })).toEqual([
      expect.stringMatching('^targetRef.namespace: must not be given: .*own namespace \\(shop\\)'),
    ]);
    expect(errorsOf(kind, { targetRefs: [api, { ...api, namespace: 'other' }] })).toEqual([
      expect.stringMatching('^targetRefs\\[1\\].namespace: '),
    ]);
    expect(errorsOf(kind, { targetRef: { ...api, name: '' } })).toEqual(['targetRef.name: must not be empty']);
    expect(errorsOf(kind, { targetRef: { ...api, namespace: 'shop' } })).toEqual([
      expect.stringMatching('^targetRef.namespace: must not be given'),
    ]);
  });

  it('is refused in both spellings at once, of which one would be forgotten', () => {
    expect(errorsOf(kind, { targetRef: api, targetRefs: [] })).toEqual([
      'targetRef: must not be given beside targetRefs: put all into that',
    ]);
  });

  it('is told to hold nowhere where nothing carries it out', () => {
    expect(warnings(kind, { targetRef: api })).toEqual([]);
    expect(warnings(kind, { targetRefs: [{ ...api, group: 'networking.istio.io' }] })).toEqual([]);
    expect(warnings(kind, { targetRefs: [] })).toEqual([
      'targetRefs: has none: the object holds for the whole namespace',
    ]);
    const unheld = [
      { kind: 'Service', name: 'web' },
      { group: 'core', kind: 'Service', name: 'web' },
      { group: 'networking.istio.io', kind: 'ServiceEntry', name: 'web' },
      { group: 'gateway.networking.k8s.io', kind: 'GatewayClass', name: 'istio-waypoint' },
    ];
    for (const reference of unheld) {
      expect(warnings(kind, { targetRef: reference })).toEqual([
        expect.stringMatching(`^targetRefs\\[0\\].kind: ${reference.kind} is for waypoints.*the object holds nowhere`),
      ]);
    }
    expect(warnings(kind, { targetRefs: [api, unheld[0]] })).toEqual([
      expect.stringMatching('^targetRefs\\[1\\].kind: .*nothing holds for it'),
    ]);
  });
});
