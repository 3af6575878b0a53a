/** The CRDs of `pilot-discovery crds` in a real API server: the objects that it accepts and rejects. */
import * as E from 'fp-ts/lib/Either.js';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  type ApiResource,
  customResourceDefinitions,
  resourceOf,
} from '../../src/discovery/kubernetes/api-resource.ts';
import type { KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { type KindName, kinds } from '../../src/model/kinds/index.ts';
import { resourceDefinitions } from '../../src/model/schemas/resource-definition.ts';
import { isObject } from '../../src/runtime/json-object.ts';
import { failureOf } from '../fixtures/failure-of.ts';
import { invalidObjects } from '../fixtures/invalid-objects.ts';
import { kindOf, objectsOfFiles, randomObjects } from '../fixtures/written-objects.ts';
import { eventually } from '../harness/eventually.ts';
import { sized } from '../harness/size-of-run.ts';
import { givenOwnServer } from './given-cluster.ts';

// Other files temporarily define kinds of the same names.
const { cluster } = givenOwnServer();
const neverAborted = new AbortController().signal;
const definitions = resourceDefinitions();

interface Definition extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly { type: string; status: string; message?: string }[] };
}

beforeAll(async () => {
  await Promise.all(definitions.map((definition) => cluster.apply(customResourceDefinitions, definition as never)));
  await eventually('all are served', async () => {
    const all = (await cluster.admin.list(customResourceDefinitions, {}, neverAborted)).items as readonly Definition[];
    return all.filter((one) => isSo(one, 'Established') && isSo(one, 'NamesAccepted')).length === definitions.length;
  });
  await eventually('objects are looked up', async () => {
    for (const { spec } of definitions) {
      await cluster.admin.list(resourceOf(spec.names.kind as KindName), { namespace: cluster.namespace }, neverAborted);
    }
    return true;
  });
});

function isSo({ status }: Definition, type: string): boolean {
  return status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false;
}

interface ToSend {
  readonly kind: string;
  readonly spec: unknown;
  readonly version?: string;
}

let count = 0;

/** The object as it would be stored (`dryRun`). */
async function sendObject(
  { kind, spec, version }: ToSend,
  query: Record<string, string> = {},
): Promise<KubernetesObject> {
  const resource: ApiResource = resourceOf(kind as KindName, version);
  const { namespace } = cluster;
  const body = {
    apiVersion: `${resource.group}/${resource.version}`,
    ...{ kind: resource.kind, metadata: { name: `object-${count++}`, namespace }, spec },
  };
  return cluster.admin.request(
    { method: 'POST', resource, namespace, body, query: { dryRun: 'All', ...query } },
    neverAborted,
  );
}

const isDecodable = (kind: KindName, spec: unknown): boolean => E.isRight(kinds[kind].decode(spec, cluster.namespace));

function removeNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(removeNull);
  if (!isObject(value)) return value;
  const presentFields = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(presentFields.map(([name, field]) => [name, removeNull(field)]));
}

describe('the CRDs of pilot-discovery crds', () => {
  it('are structural, and unchanged when they are applied again', async () => {
    const all = (await cluster.admin.list(customResourceDefinitions, {}, neverAborted)).items as readonly Definition[];
    const unsound = all.filter((one) => one.status?.conditions?.some(({ type }) => type === 'NonStructuralSchema'));
    expect(unsound.map(({ metadata }) => metadata.name)).toEqual([]);
    const versions = all.map(({ metadata }) => metadata.resourceVersion);
    for (const definition of definitions) await cluster.apply(customResourceDefinitions, definition as never);
    const nextDefinitions = (await cluster.admin.list(customResourceDefinitions, {}, neverAborted)).items;
    expect(nextDefinitions.map(({ metadata }) => metadata.resourceVersion)).toEqual(versions);
  });
});

describe('an object that decoders accept', () => {
  it('is stored unchanged in each version', async () => {
    const objects = objectsOfFiles().filter(({ kind, spec }) => isDecodable(kind as KindName, spec));
    for (const { kind, spec } of objects) {
      for (const version of kinds[kind as KindName].versions.slice(0, sized({ quick: 1, short: 1, full: 3 }))) {
        const stored = await sendObject({ kind, spec, version }, { fieldValidation: 'Strict' });
        expect(stored.spec).toEqual(removeNull(spec));
      }
    }
    expect(objects.length).toBeGreaterThan(100);
  });

  it('is accepted with any valid fields', async () => {
    const seeds = sized({ short: 5, full: 500 });
    const objects = Array.from({ length: seeds }, (_, seed) => randomObjects(seed)).flat();
    const refusals: unknown[] = [];
    let takenCount = 0;
    for (const object of objects) {
      if (!isDecodable(kindOf(object) as KindName, object.spec)) continue;
      takenCount++;
      await sendObject(object).catch((error: unknown) =>
        refusals.push([object.kind, JSON.stringify(object.spec), String(error)]),
      );
    }
    expect(refusals).toEqual([]);
    expect(takenCount).toBeGreaterThan(seeds * 5);
  });
});

describe('an object with errors', () => {
  it.each(invalidObjects)('is rejected with the field name: $kind $at ($by)', async ({ kind, spec, at }) => {
    const failure = await failureOf(sendObject({ kind, spec }));
    expect(failure).toMatchObject({ kind: 'status', code: 422, reason: 'Invalid' });
    expect(failure.message).toContain(at === '' ? 'spec' : `spec.${at}`);
  });

  it('is rejected for an unknown field if the client requests this, and keeps a restriction without a value', async () => {
    const spec = { rulez: [] };
    const failure = await failureOf(sendObject({ kind: 'AuthorizationPolicy', spec }, { fieldValidation: 'Strict' }));
    expect(failure.message).toContain('unknown field "spec.rulez"');
    const keptObject = await sendObject({ kind: 'AuthorizationPolicy', spec: { rules: null } });
    expect(keptObject.spec).toEqual({ rules: null });
  });
});
