/** The injector's strategic merge equals that of Kubernetes. */
import { spawnSync } from 'node:child_process';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { mergePod } from '../../src/injection/merge/strategic-merge.ts';
import type { Json } from '../../src/injection/pod/pod.ts';
import { findOrBuild, mergeOracle } from '../cluster/go-program.ts';
import { sized } from '../harness/size-of-run.ts';

const buildLimitMs = 600_000;

interface MergeCase {
  readonly original: Json;
  readonly patch: Json;
}

async function mergedByKubernetes(
  cases: readonly MergeCase[],
): Promise<readonly { result?: unknown; error?: string }[]> {
  const binary = await findOrBuild(mergeOracle, () => {});
  const input = cases.map((one) => `${JSON.stringify(one)}\n`).join('');
  const { status, stdout, stderr } = spawnSync(binary, { input, encoding: 'utf8', maxBuffer: 1 << 30 });
  if (status !== 0) throw new Error(`the Go program failed: ${stderr}`);
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { result?: unknown; error?: string });
}

/** When Kubernetes decodes the result, null fields, empty lists and empty objects are absent. */
function normalized(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(normalized);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value)
    .filter(([, field]) => field !== null)
    .map(([key, field]) => [key, normalized(field)] as const);
  return Object.fromEntries(fields.sort(([a], [b]) => (a < b ? -1 : 1)));
}

const name = fc.constantFrom('a', 'b', 'c', 'd');
const text = fc.constantFrom('', '1', '2');
const listOf = (item: fc.Arbitrary<object>, key: string): fc.Arbitrary<object[]> =>
  fc.uniqueArray(item, { selector: (one) => (one as Record<string, unknown>)[key], maxLength: 4 });

/** @param isPatch whether directives and null may occur */
function podLike(isPatch: boolean): fc.Arbitrary<Json> {
  const orNull = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | null> => (isPatch ? fc.option(of, { freq: 8 }) : of);
  const optionalRecord = (fields: Record<string, fc.Arbitrary<unknown>>, key?: string): fc.Arbitrary<object> =>
    fc.record(fields, { requiredKeys: key === undefined ? [] : [key] });
  const keyed = (fields: Record<string, fc.Arbitrary<unknown>>, key: string): fc.Arbitrary<object[]> => {
    const item = optionalRecord(fields, key);
    if (!isPatch) return listOf(item, key);
    const removedItem = fc.record({ [key]: fields[key]!, $patch: fc.constant('delete') });
    return listOf(fc.oneof({ weight: 6, arbitrary: item }, { weight: 1, arbitrary: removedItem }), key);
  };
  const environment = keyed(
    { name, value: text, valueFrom: optionalRecord({ fieldRef: optionalRecord({ fieldPath: text }) }) },
    'name',
  );
  const container = {
    name,
    image: orNull(text),
    args: orNull(fc.array(text, { maxLength: 2 })),
    env: orNull(environment),
    ports: orNull(keyed({ containerPort: fc.constantFrom(80, 81, 82), name: text, protocol: text }, 'containerPort')),
    volumeMounts: orNull(keyed({ mountPath: name, name: text, readOnly: fc.boolean() }, 'mountPath')),
    securityContext: orNull(
      optionalRecord({
        runAsUser: fc.nat(3),
        capabilities: optionalRecord({ add: fc.array(text, { maxLength: 2 }), drop: fc.array(text, { maxLength: 2 }) }),
      }),
    ),
    resources: orNull(optionalRecord({ limits: orNull(optionalRecord({ cpu: text, memory: orNull(text) })) })),
  };
  const spec = optionalRecord({
    containers: keyed(container, 'name'),
    initContainers: orNull(keyed(container, 'name')),
    volumes: orNull(
      keyed(
        { name, emptyDir: orNull(optionalRecord({ medium: text })), configMap: orNull(optionalRecord({ name: text })) },
        'name',
      ),
    ),
    imagePullSecrets: orNull(keyed({ name }, 'name')),
    hostAliases: orNull(keyed({ ip: name, hostnames: fc.array(text, { maxLength: 2 }) }, 'ip')),
    tolerations: orNull(fc.array(optionalRecord({ key: text, operator: text }), { maxLength: 2 })),
    nodeSelector: orNull(fc.dictionary(name, orNull(text) as fc.Arbitrary<string>)),
    securityContext: orNull(
      optionalRecord({
        sysctls: fc.array(optionalRecord({ name: text, value: text }), { maxLength: 2 }),
        fsGroup: fc.nat(3),
      }),
    ),
    terminationGracePeriodSeconds: orNull(fc.nat(9)),
  });
  const metadata = optionalRecord({
    labels: orNull(fc.dictionary(name, orNull(text) as fc.Arbitrary<string>)),
    annotations: orNull(fc.dictionary(name, text)),
    finalizers: fc.uniqueArray(name, { maxLength: 3 }),
  });
  return optionalRecord({ metadata, spec }) as fc.Arbitrary<Json>;
}

test('a random patch gives the same result as in Kubernetes', { timeout: buildLimitMs }, async () => {
  const count = sized({ short: 1_000, full: 5_000 });
  const cases = fc.sample(fc.record({ original: podLike(false), patch: podLike(true) }), count);
  const expected = await mergedByKubernetes(cases);
  expect(expected).toHaveLength(cases.length);
  let compared = 0;
  for (const [index, one] of cases.entries()) {
    const { result, error } = expected[index]!;
    // Inside of an item that the patch adds, Kubernetes keeps the directive, and then the API server keeps an item
    // without content.
    if (error !== undefined || JSON.stringify(result).includes('"$patch"')) continue;
    compared++;
    const mergedPod = normalized(mergePod(one.original, one.patch));
    const message = JSON.stringify({ ...one, merged: mergedPod, expected: normalized(result) });
    expect(isDeepStrictEqual(mergedPod, normalized(result)), message).toBe(true);
  }
  expect(compared).toBeGreaterThan(count * 0.6);
});
