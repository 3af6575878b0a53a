/**
 * Applies strategic merge patches to Pods as Kubernetes does. `test/injection/strategic-merge.test.ts` compares it with the
 * implementation of Kubernetes.
 */
import { isObject } from '../../runtime/json-object.ts';
import type { Json } from '../pod/pod.ts';

/** Without a rule, objects are merged field by field, and lists and scalars are replaced. */
interface FieldRule {
  /** Field by which items of the list are merged. */
  readonly mergeKey?: string;
  /** The list is a set of scalars. */
  readonly isSet?: true;
  /** Rules of the fields of the object, or of each item. */
  readonly fields?: Readonly<Record<string, FieldRule>>;
}

const container: Readonly<Record<string, FieldRule>> = {
  env: { mergeKey: 'name' },
  ports: { mergeKey: 'containerPort' },
  volumeMounts: { mergeKey: 'mountPath' },
  volumeDevices: { mergeKey: 'devicePath' },
};
/** Merge keys of the Pod API, from the `patchMergeKey` tags of its types. */
const podRules: Readonly<Record<string, FieldRule>> = {
  metadata: { fields: { ownerReferences: { mergeKey: 'uid' }, finalizers: { isSet: true } } },
  spec: {
    fields: {
      containers: { mergeKey: 'name', fields: container },
      initContainers: { mergeKey: 'name', fields: container },
      ephemeralContainers: { mergeKey: 'name', fields: container },
      volumes: { mergeKey: 'name' },
      imagePullSecrets: { mergeKey: 'name' },
      hostAliases: { mergeKey: 'ip' },
      topologySpreadConstraints: { mergeKey: 'topologyKey' },
      resourceClaims: { mergeKey: 'name' },
      schedulingGates: { mergeKey: 'name' },
    },
  },
};

const gatewayRules = {
  deployment: { metadata: podRules.metadata!, spec: { fields: { template: { fields: podRules } } } },
  service: { metadata: podRules.metadata!, spec: { fields: { ports: { mergeKey: 'port' } } } },
  serviceAccount: {
    metadata: podRules.metadata!,
    imagePullSecrets: { mergeKey: 'name' },
    secrets: { mergeKey: 'name' },
  },
} satisfies Readonly<Record<string, Readonly<Record<string, FieldRule>>>>;

/** The message names the field. */
export class MergeError extends Error {}

/** @throws MergeError for an unsupported directive, or a list item without its merge key */
export function mergePod<T extends Json>(original: T, patch: Json): T {
  return mergeObject(original, patch, podRules, '') as T;
}

/** @throws MergeError as {@link mergePod} */
export function mergeContainer<T extends Json>(original: T, patch: Json): T {
  return mergeObject(original, patch, container, '') as T;
}

/** @throws MergeError as {@link mergePod} */
export function mergeGatewayObject(kind: keyof typeof gatewayRules, original: Json, patch: Json): Json {
  return mergeObject(original, patch, gatewayRules[kind], '');
}

function mergeObject(original: Json, patch: Json, rules: Readonly<Record<string, FieldRule>>, path: string): Json {
  const { $patch: directive, $retainKeys: retained, ...fields } = patch;
  if (directive === 'replace') return fields;
  if (directive === 'delete') return {};
  if (directive !== undefined && directive !== 'merge') {
    throw new MergeError(`${path}.$patch: must be merge, replace or delete`);
  }
  const kept = retained === undefined ? Object.entries(original) : retainedFields(original, retained, path);
  // Uses a Map, so that a key `__proto__` stays a key.
  const merged = new Map(kept);
  for (const [key, value] of Object.entries(fields)) {
    const place = path === '' ? key : `${path}.${key}`;
    if (key.startsWith('$')) throw new MergeError(`${place}: this directive is not supported`);
    if (value === null) merged.delete(key);
    else merged.set(key, mergeField(merged.get(key), value, rules[key] ?? {}, place));
  }
  return Object.fromEntries(merged);
}

function retainedFields(original: Json, retained: unknown, path: string): [string, unknown][] {
  if (!Array.isArray(retained)) throw new MergeError(`${path}.$retainKeys: must be a list of field names`);
  return Object.entries(original).filter(([key]) => retained.includes(key));
}

function mergeField(original: unknown, patch: unknown, rule: FieldRule, path: string): unknown {
  if (Array.isArray(patch)) return mergeList(Array.isArray(original) ? original : [], patch, rule, path);
  if (!isObject(patch)) return patch;
  return mergeObject(isObject(original) ? original : {}, patch, rule.fields ?? {}, path);
}

function mergeList(original: readonly unknown[], patch: readonly unknown[], rule: FieldRule, path: string): unknown[] {
  if (rule.isSet) return interleaved(original, patch, (item) => item);
  const { mergeKey, fields = {} } = rule;
  if (mergeKey === undefined) return patch.map((item) => withoutNullFields(item));
  const replaces = patch.some((item) => isObject(item) && item.$patch === 'replace' && item[mergeKey] === undefined);
  const items = keyed(
    patch.filter((item) => !(isObject(item) && item.$patch === 'replace' && item[mergeKey] === undefined)),
    mergeKey,
    path,
  );
  const earlier = replaces ? [] : original;
  const byKey = new Map(earlier.filter(isObject).map((item) => [item[mergeKey], item]));
  const merged = items
    .filter(({ item }) => item.$patch !== 'delete')
    .map(({ key, item }) => mergeObject(byKey.get(key) ?? {}, item, fields, `${path}[${key}]`));
  const deleted = new Set(items.filter(({ item }) => item.$patch === 'delete').map(({ key }) => key));
  const keyOf = (item: unknown): unknown => (isObject(item) ? item[mergeKey] : undefined);
  return interleaved(
    earlier.filter((item) => !deleted.has(keyOf(item))),
    merged,
    keyOf,
  );
}

/** Keeps the order of the patch's items. Each other item is inserted before the first patch item that follows it in the original, or at the end. */
function interleaved(
  original: readonly unknown[],
  patched: readonly unknown[],
  keyOf: (item: unknown) => unknown,
): unknown[] {
  const place = new Map(original.map((item, index) => [keyOf(item), index]));
  const inPatch = new Set(patched.map(keyOf));
  const unpatched = original.filter((item) => !inPatch.has(keyOf(item)));
  const result: unknown[] = [];
  for (const item of patched) {
    const at = place.get(keyOf(item)) ?? -1;
    while (unpatched.length > 0 && place.get(keyOf(unpatched[0]))! < at) result.push(unpatched.shift());
    result.push(item);
  }
  return [...result, ...unpatched];
}

function keyed(
  items: readonly unknown[],
  mergeKey: string,
  path: string,
): readonly { readonly key: unknown; readonly item: Json }[] {
  return items.map((item, index) => {
    if (!isObject(item) || item[mergeKey] === undefined || item[mergeKey] === null) {
      throw new MergeError(`${path}[${index}].${mergeKey}: is required, it identifies the item`);
    }
    return { key: item[mergeKey], item };
  });
}

function withoutNullFields(value: unknown): unknown {
  return isObject(value) ? mergeObject({}, value, {}, '') : value;
}
