/** Tests that small objects with a large expansion are rejected with the field and the limit, and that sizes of real meshes are accepted. */
import { describe, expect, it } from 'vitest';
import { type LargeObject, largestAccepted, largestObjects } from '../../../test/tenants/largest-objects.ts';
import { readConfigObject } from '../config/config-file.ts';
import { type KindName, kinds } from './index.ts';

function read(kind: KindName, { body, labels, annotations }: LargeObject) {
  const { group, versions, scope, writtenAs = kind } = kinds[kind];
  const apiVersion = group === '' ? versions[0]! : `${group}/${versions[0]}`;
  const namespace = scope === 'Namespaced' ? { namespace: 'mallory' } : {};
  const metadata = { name: 'large', ...namespace, labels, annotations };
  return readConfigObject('k8s://', { apiVersion, kind: writtenAs, metadata, ...body }, { creationTimestamp: 0 });
}

const names = Object.keys(kinds) as KindName[];

describe('an object of 1 MB', () => {
  it('is tested for every kind', () => {
    expect(Object.keys(largestObjects).sort()).toEqual(names.toSorted());
  });

  it.each(names)('is rejected because of its largest list, with field and limit: %s', (kind) => {
    for (const largeObject of largestObjects[kind]()) {
      const { config, problems } = read(kind, largeObject);
      const errors = problems.filter(({ severity }) => severity === 'error');
      if (largeObject.isText) {
        expect(errors, largeObject.title).toEqual([]);
        continue;
      }
      expect(config === undefined, largeObject.title).toBe(true);
      expect(errors.length, largeObject.title).toBeGreaterThan(0);
      expect(errors.length, largeObject.title).toBeLessThan(5);
      for (const { field, code, expected, got } of errors) {
        expect(field, largeObject.title).toMatch(/\w/);
        expect(['LIMIT_EXCEEDED', 'FIELD_TOO_LARGE'], largeObject.title).toContain(code);
        expect([expected, got], largeObject.title).toEqual([
          expect.stringMatching(/^at most \d+ ./),
          expect.stringMatching(/^\d+$/),
        ]);
      }
    }
  });
});

describe('an object at its limits', () => {
  it.each(Object.keys(largestAccepted) as KindName[])('is accepted: %s', (kind) => {
    for (const largeObject of largestAccepted[kind]!()) {
      const { problems, config } = read(kind, largeObject);
      expect(problems.filter(({ severity }) => severity === 'error').map(({ message }) => message)).toEqual([]);
      expect(config, largeObject.title).toBeDefined();
    }
  });
});

describe('the placeholder for a restriction that exceeds a limit', () => {
  const standIn = (kind: KindName, spec: object) =>
    read(kind, { title: '', body: { spec } }).standIns.map((config) => [config.kind, config.spec]);
  const repeatItem = <Item>(item: (index: number) => Item, count = 5_000): Item[] =>
    Array.from({ length: count }, (_, index) => item(index));

  it('requires mutual TLS on all ports instead of a PeerAuthentication', () => {
    const portLevelMtls = Object.fromEntries(repeatItem((index) => [`${index + 1}`, { mode: 'DISABLE' }]));
    const selector = { matchLabels: { app: 'web' } };
    expect(standIn('PeerAuthentication', { selector, mtls: { mode: 'PERMISSIVE' }, portLevelMtls })).toEqual([
      ['PeerAuthentication', { selector: { app: 'web' }, mtls: 'STRICT' }],
    ]);
  });

  it('denies every request instead of an AuthorizationPolicy or RequestAuthentication', () => {
    const denial = [['AuthorizationPolicy', { action: 'DENY', rules: [{}] }]];
    expect(standIn('AuthorizationPolicy', { rules: repeatItem(() => ({})) })).toEqual(denial);
    const jwtRules = repeatItem((index) => ({ issuer: `i${index}`, jwks: '{"keys":[]}' }));
    expect(standIn('RequestAuthentication', { jwtRules })).toEqual(denial);
  });

  it("uses mutual TLS of the mesh instead of a DestinationRule's TLS", () => {
    const subsets = repeatItem((index) => ({ name: `s${index}` }));
    expect(standIn('DestinationRule', { host: 'a.test', trafficPolicy: { tls: { mode: 'SIMPLE' } }, subsets })).toEqual(
      [['DestinationRule', { host: 'a.test', trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } }]],
    );
  });
});
