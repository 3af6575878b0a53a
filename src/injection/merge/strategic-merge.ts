/** `test/injection/kubernetes-merge.test.ts` compares the result with that of Kubernetes. */
import { isObject } from '../../runtime/json-object.ts';
import type { Json } from '../pod/pod.ts';

/** Without a rule, objects are merged field by field, and lists and scalars are replaced. */
interface FieldRule {
  /** Items of the list are merged by this field. */
  readonly mergeKey?: string;
  readonly isSet?: true;
  readonly fields?: Readonly<Record<string, FieldRule>>;
}

const container: Readonly<Record<string, FieldRule>> = {
  env: { mergeKey: 'name' },
  ports: { mergeKey: 'containerPort' },
  volumeMounts: { mergeKey: 'mountPath' },
  volumeDevices: { mergeKey: 'devicePath' },
};
/** Merge keys are the `patchMergeKey` tags of the Pod API's types. */
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
export function mergePod<T extends Json>(originalPod: T, patch: Json): T {
  return mergeObject(originalPod, patch, podRules, '') as T;
}

export function mergeContainer<T extends Json>(originalContainer: T, patch: Json): T {
  return mergeObject(originalContainer, patch, container, '') as T;
}

export function mergeGatewayObject(kind: keyof typeof gatewayRules, originalObject: Json, patch: Json): Json {
  return mergeObject(originalObject, patch, gatewayRules[kind], '');
}

function mergeObject(
  originalObject: Json,
  patch: Json,
  rules: Readonly<Record<string, FieldRule>>,
  path: string,
): Json {
  const { $patch: directive, $retainKeys: retainedKeys, ...fields } = patch;
  if (directive === 'replace') return fields;
  if (directive === 'delete') return {};
  if (directive !== undefined && directive !== 'merge') {
    throw new MergeError(`${path}.$patch: must be merge, replace or delete`);
  }
  const keptEntries =
    retainedKeys === undefined ? Object.entries(originalObject) : retainedFields(originalObject, retainedKeys, path);
  // In a Map, a key `__proto__` stays a key.
  const mergedFields = new Map(keptEntries);
  for (const [key, value] of Object.entries(fields)) {
    const fieldPath = path === '' ? key : `${path}.${key}`;
    if (key.startsWith('$')) throw new MergeError(`${fieldPath}: this directive is not supported`);
    if (value === null) mergedFields.delete(key);
    else mergedFields.set(key, mergeField(mergedFields.get(key), value, rules[key] ?? {}, fieldPath));
  }
  return Object.fromEntries(mergedFields);
}

function retainedFields(originalObject: Json, retained: unknown, path: string): [string, unknown][] {
  if (!Array.isArray(retained)) throw new MergeError(`${path}.$retainKeys: must be a list of field names`);
  return Object.entries(originalObject).filter(([key]) => retained.includes(key));
}

function mergeField(originalValue: unknown, patch: unknown, rule: FieldRule, path: string): unknown {
  if (Array.isArray(patch)) return mergeList(Array.isArray(originalValue) ? originalValue : [], patch, rule, path);
  if (!isObject(patch)) return patch;
  return mergeObject(isObject(originalValue) ? originalValue : {}, patch, rule.fields ?? {}, path);
}

function mergeList(
  originalList: readonly unknown[],
  patch: readonly unknown[],
  rule: FieldRule,
  path: string,
): unknown[] {
  if (rule.isSet) return interleaveItems(originalList, patch, (item) => item);
  const { mergeKey, fields = {} } = rule;
  if (mergeKey === undefined) return patch.map((item) => withoutNullFields(item));
  const isReplacement = patch.some(
    (item) => isObject(item) && item.$patch === 'replace' && item[mergeKey] === undefined,
  );
  const items = keyed(
    patch.filter((item) => !(isObject(item) && item.$patch === 'replace' && item[mergeKey] === undefined)),
    mergeKey,
    path,
  );
  const originalItems = isReplacement ? [] : originalList;
  const itemByKey = new Map(originalItems.filter(isObject).map((item) => [item[mergeKey], item]));
  const mergedItems = items
    .filter(({ item }) => item.$patch !== 'delete')
    .map(({ key, item }) => mergeObject(itemByKey.get(key) ?? {}, item, fields, `${path}[${key}]`));
  const deleted = new Set(items.filter(({ item }) => item.$patch === 'delete').map(({ key }) => key));
  const keyOf = (item: unknown): unknown => (isObject(item) ? item[mergeKey] : undefined);
  return interleaveItems(
    originalItems.filter((item) => !deleted.has(keyOf(item))),
    mergedItems,
    keyOf,
  );
}

/** Inserts each item that the patch lacks before the first patch item that follows it in the original, or at the end. */
function interleaveItems(
  originalList: readonly unknown[],
  patchedItems: readonly unknown[],
  keyOf: (item: unknown) => unknown,
): unknown[] {
  const indexByKey = new Map(originalList.map((item, index) => [keyOf(item), index]));
  const patchedKeys = new Set(patchedItems.map(keyOf));
  const unpatchedItems = originalList.filter((item) => !patchedKeys.has(keyOf(item)));
  const result: unknown[] = [];
  for (const item of patchedItems) {
    const insertIndex = indexByKey.get(keyOf(item)) ?? -1;
    while (unpatchedItems.length > 0 && indexByKey.get(keyOf(unpatchedItems[0]))! < insertIndex)
      result.push(unpatchedItems.shift());
    result.push(item);
  }
  return [...result, ...unpatchedItems];
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
