/** test/cluster/definitions.test.ts tests validation by a real API server. */
import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { invalidObjects } from '../../../test/fixtures/invalid-objects.ts';
import { rejectedPaths, structuralErrors } from '../../../test/fixtures/structural-rules.ts';
import { kindOf, objectsOfFiles, randomObjects } from '../../../test/fixtures/written-objects.ts';
import { sized } from '../../../test/harness/size-of-run.ts';
import type { WrittenObject } from '../../../test/random-config/values.ts';
import { nulls } from '../../../test/restrictions/table.ts';
import { isObject } from '../../runtime/json-object.ts';
import { type KindName, kinds } from '../kinds/index.ts';
import { resourceDefinitions } from './resource-definition.ts';
import type { StructuralSchema } from './structural-schema.ts';

const definitions = resourceDefinitions();

const schemas = new Map(
  definitions.map(({ spec }) => [
    spec.names.kind,
    spec.versions[0]!.schema.openAPIV3Schema.properties!.spec as StructuralSchema,
  ]),
);

const refusals = ({ kind, spec }: Pick<WrittenObject, 'kind' | 'spec'>): string[] =>
  rejectedPaths(schemas.get(kind)!, spec);

const isAccepted = (object: WrittenObject): boolean => {
  const kind = kindOf(object) as KindName;
  return E.isRight(kinds[kind].decode(object.spec, object.metadata.namespace));
};

/** Returns the value as the API server stores it, with `null` only in nullable fields. */
function asStored(schema: StructuralSchema, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => asStored(schema.items!, item));
  if (!isObject(value)) return value;
  const childOf = (name: string): StructuralSchema => schema.properties?.[name] ?? schema.additionalProperties ?? {};
  const keptFields = Object.entries(value).filter(([name, field]) => field !== null || childOf(name).nullable);
  return Object.fromEntries(keptFields.map(([name, field]) => [name, asStored(childOf(name), field)]));
}

describe('generated CustomResourceDefinitions', () => {
  it("exist for every kind and version of Istio's API, with one stored version", () => {
    const servedVersions = definitions.map(({ metadata, spec: { versions } }) => [
      metadata.name,
      versions.map(({ name, storage }) => (storage ? `${name} (stored)` : name)).join(', '),
    ]);
    expect(Object.fromEntries(servedVersions)).toMatchInlineSnapshot(`
      {
        "authorizationpolicies.security.istio.io": "v1 (stored), v1beta1",
        "destinationrules.networking.istio.io": "v1 (stored), v1beta1, v1alpha3",
        "envoyfilters.networking.istio.io": "v1alpha3 (stored)",
        "gateways.networking.istio.io": "v1 (stored), v1beta1, v1alpha3",
        "peerauthentications.security.istio.io": "v1 (stored), v1beta1",
        "proxyconfigs.networking.istio.io": "v1beta1 (stored)",
        "requestauthentications.security.istio.io": "v1 (stored), v1beta1",
        "serviceentries.networking.istio.io": "v1 (stored), v1beta1, v1alpha3",
        "sidecars.networking.istio.io": "v1 (stored), v1beta1, v1alpha3",
        "telemetries.telemetry.istio.io": "v1 (stored), v1alpha1",
        "trafficextensions.extensions.istio.io": "v1alpha1 (stored)",
        "virtualservices.networking.istio.io": "v1 (stored), v1beta1, v1alpha3",
        "wasmplugins.extensions.istio.io": "v1alpha1 (stored)",
        "workloadentries.networking.istio.io": "v1 (stored), v1beta1, v1alpha3",
        "workloadgroups.networking.istio.io": "v1 (stored), v1beta1, v1alpha3",
      }
    `);
    const istioKinds = Object.values(kinds).filter(({ group }) => group.endsWith('.istio.io'));
    expect(definitions.map(({ spec }) => spec.names.kind)).toEqual(istioKinds.map(({ kind }) => kind).sort());
  });

  it('have structural schemas', () => {
    const errors = definitions.flatMap(({ metadata, spec }) =>
      spec.versions.flatMap(({ schema }) =>
        structuralErrors(schema.openAPIV3Schema).map((error) => `${metadata.name}: ${error}`),
      ),
    );
    expect(errors).toEqual([]);
  });

  it('fit into the last-applied annotation of kubectl apply', () => {
    const largeDefinitions = definitions.filter((definition) => JSON.stringify(definition).length > 256 * 1024);
    expect(largeDefinitions.map(({ metadata }) => metadata.name)).toEqual([]);
  });

  it('are deterministic', () => {
    expect(JSON.stringify(resourceDefinitions())).toBe(JSON.stringify(definitions));
  });
});

describe('generated schemas', () => {
  it('accept every object from the examples and golden cases that decoders accept', () => {
    const objects = objectsOfFiles().filter(isAccepted);
    expect(objects.length).toBeGreaterThan(100);
    expect(
      objects
        .map((object) => [object.kind, object.metadata.name, refusals(object)])
        .filter(([, , at]) => at!.length > 0),
    ).toEqual([]);
  });

  it('accept every random object that decoders accept', () => {
    const seeds = sized({ quick: 60, short: 200, full: 5_000 });
    const wronglyRefused = Array.from({ length: seeds }, (_, seed) => randomObjects(seed))
      .flat()
      .filter((object) => refusals(object).length > 0 && isAccepted(object));
    expect(
      wronglyRefused.slice(0, 3).map(({ kind, spec }) => [kind, refusals({ kind, spec }), JSON.stringify(spec)]),
    ).toEqual([]);
  });

  it('keep null in fields where it is an error, and drop it elsewhere', () => {
    const nullable = (kind: string): string[] =>
      Object.entries(schemas.get(kind)!.properties!).flatMap(([name, schema]) => (schema.nullable ? name : []));
    const scope = ['selector', 'targetRef', 'targetRefs'];
    expect(nullable('AuthorizationPolicy')).toEqual(['action', 'provider', 'rules', ...scope]);
    expect(nullable('RequestAuthentication')).toEqual(['jwtRules', ...scope]);
    expect(nullable('PeerAuthentication')).toEqual(['mtls', 'portLevelMtls', 'selector']);
    expect(nullable('VirtualService')).toEqual(['gateways']);
  });

  it.each(nulls.filter(({ apiVersion }) => apiVersion.endsWith('.istio.io/v1')))(
    'keep null in $kind $field, so that it is rejected',
    ({ kind, spec }) => {
      expect(asStored(schemas.get(kind)!, spec)).toEqual(spec);
    },
  );

  it.each(invalidObjects.filter(({ by }) => by === 'schema').map((row) => [row.kind, row.spec, row.at] as const))(
    'reject %s %s at %s',
    (kind, spec, at) => {
      expect(refusals({ kind, spec })).toContain(at);
      expect(E.isLeft(kinds[kind].decode(spec, 'shop'))).toBe(true);
    },
  );
});
