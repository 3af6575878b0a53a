/** Tests that unsupported targets of policies are rejected, or reported as without effect. */

import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { codedError } from '../../../../test/fixtures/coded-error.ts';
import type { FieldError } from '../../fields/violation.ts';
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
  return E.isLeft(decoded) ? decoded.left.map(codedError) : [];
}

function warnings(kind: keyof typeof specs, scope: object): string[] {
  const decoded = kinds[kind].decode({ ...specs[kind], ...scope }, 'shop');
  if (E.isLeft(decoded)) throw new Error(JSON.stringify(decoded.left));
  return (kinds[kind].warnings as (spec: unknown) => readonly FieldError[])(decoded.right)
    .filter(({ path }) => path.startsWith('targetRefs'))
    .map(codedError);
}

const api = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'front' };

describe.each(names)('the target of a %s', (kind) => {
  it.each([
    ['a kind that supports no policies', { kind: 'Deployment', group: 'apps', name: 'web' }, 'Deployment of apps'],
    ['a kind in lower case', { ...api, kind: 'gateway' }, 'gateway of gateway.networking.k8s.io'],
    ['a Gateway without a group', { kind: 'Gateway', name: 'front' }, 'Gateway of the core group'],
    ['a misspelled group', { ...api, group: 'gateway.networking.k8s.IO' }, 'Gateway of gateway.networking.k8s.IO'],
    ['a Service of another group', { group: 'apps', kind: 'Service', name: 'web' }, 'Service of apps'],
    ['a Pod', { kind: 'Pod', name: 'web' }, 'Pod of the core group'],
  ])('is rejected if it is %s', (_, reference, gotText) => {
    expect(errorsOf(kind, { targetRef: reference })).toEqual([`targetRef: FIELD_REFERENCE_UNKNOWN got "${gotText}"`]);
    expect(errorsOf(kind, { targetRefs: [api, reference] })).toEqual([
      `targetRefs[1]: FIELD_REFERENCE_UNKNOWN got "${gotText}"`,
    ]);
  });

  it("is rejected if it has no name, or has a namespace, even the object's own", () => {
    expect(errorsOf(kind, { targetRef: { ...api, namespace: 'other' } })).toEqual([
      'targetRef.namespace: FIELD_NOT_ALLOWED',
    ]);
    expect(errorsOf(kind, { targetRefs: [api, { ...api, namespace: 'other' }] })).toEqual([
      'targetRefs[1].namespace: FIELD_NOT_ALLOWED',
    ]);
    expect(errorsOf(kind, { targetRef: { ...api, name: '' } })).toEqual(['targetRef.name: FIELD_EMPTY']);
    expect(errorsOf(kind, { targetRef: { ...api, namespace: 'shop' } })).toEqual([
      'targetRef.namespace: FIELD_NOT_ALLOWED',
    ]);
  });

  it('is rejected if both spellings are set, because one would be ignored', () => {
    expect(errorsOf(kind, { targetRef: api, targetRefs: [] })).toEqual(['targetRef: FIELDS_EXCLUSIVE']);
  });

  it('has a warning if it is not supported', () => {
    expect(warnings(kind, { targetRef: api })).toEqual([]);
    expect(warnings(kind, { targetRefs: [{ ...api, group: 'networking.istio.io' }] })).toEqual([]);
    expect(warnings(kind, { targetRefs: [] })).toEqual(['targetRefs: FIELD_DOUBTFUL']);
    const unheld = [
      { kind: 'Service', name: 'web' },
      { group: 'core', kind: 'Service', name: 'web' },
      { group: 'networking.istio.io', kind: 'ServiceEntry', name: 'web' },
      { group: 'gateway.networking.k8s.io', kind: 'GatewayClass', name: 'istio-waypoint' },
    ];
    for (const reference of unheld) {
      expect(warnings(kind, { targetRef: reference })).toEqual(['targetRefs[0].kind: FIELD_UNSUPPORTED']);
    }
    expect(warnings(kind, { targetRefs: [api, unheld[0]] })).toEqual(['targetRefs[1].kind: FIELD_UNSUPPORTED']);
  });
});
