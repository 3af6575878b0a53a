/**
 * Trims received objects: a complete pod takes 17.7 KB of heap, the used fields 0.3 KB. Every
 * field that a decoder in `src/model/kinds` reads must be kept.
 */
import { hash } from 'node:crypto';
import { pullSecretKey } from '../../../model/kinds/kubernetes/pull-secret.ts';
import { type ApiResource, apiVersionOf } from '../api-resource.ts';
import type { KubernetesObject, ObjectMeta, ObjectSelection } from '../api-server.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/** kubectl stores a copy of the object in it. */
const lastAppliedAnnotation = 'kubectl.kubernetes.io/last-applied-configuration';
/** Domains of used annotations. Annotations of other domains can contain 256 KiB of text. */
const retainedAnnotations = /^(?:(?:[^/]*\.)?(?:istio|kubernetes|k8s)\.io|chartpilot)\//;
/** Users and groups that OpenShift assigns to a namespace. The injection uses them. */
const retainedNamespaceAnnotations = /^openshift\.io\/sa\.scc\./;
/** Only used metadata is kept, because controllers write other fields of any size. */
const retainedMetadata = [
  ...['name', 'uid', 'resourceVersion', 'generation'],
  ...['creationTimestamp', 'deletionTimestamp'],
] as const;

const retainedFieldsByKind = new Map<string, (object: JsonObject, sharedTexts: SharedTexts) => JsonObject>([
  ['/Secret', secretFields],
  ['/ConfigMap', configMapFields],
  ['/Pod', podFields],
  ['/Node', nodeFields],
  ['/Namespace', namespaceFields],
  ['/Service', serviceFields],
  ['discovery.k8s.io/EndpointSlice', sliceFields],
]);

/** Longer texts rarely repeat, and a shared copy would only add to the memory. */
const maxSharedCharacters = 1_000;
/** With more characters, storing shared texts could need more memory than sharing saves. */
const maxAllSharedCharacters = 4_000_000;

/** Stores values that many objects contain, such as label sets, only once. Shared values must not be modified. */
export class SharedTexts {
  readonly #texts = new Map<string, string>();
  readonly #values = new Map<string, unknown>();
  readonly #maxEntries: number;
  readonly #maxCharacters: number;
  #textCharacters = 0;
  #valueCharacters = 0;

  /** @param maxCharacters maximum for all texts, and separately for the JSON of all values */
  constructor(maxEntries = 20_000, maxCharacters = maxAllSharedCharacters) {
    this.#maxEntries = maxEntries;
    this.#maxCharacters = maxCharacters;
  }

  get size(): number {
    return Math.max(this.#texts.size, this.#values.size);
  }

  get characters(): number {
    return Math.max(this.#textCharacters, this.#valueCharacters);
  }

  shareText(text: string): string {
    if (text.length > maxSharedCharacters) return text;
    const sharedText = this.#texts.get(text);
    if (sharedText !== undefined) return sharedText;
    // Clears the cache, because it also contains texts of deleted objects.
    if (this.#texts.size >= this.#maxEntries || this.#textCharacters + text.length > this.#maxCharacters) {
      this.#texts.clear();
      this.#textCharacters = 0;
    }
    this.#texts.set(text, text);
    this.#textCharacters += text.length;
    return text;
  }

  shareValue<Value extends object>(value: Value): Value {
    const json = JSON.stringify(value);
    if (json.length > maxSharedCharacters) return value;
    const sharedValue = this.#values.get(json);
    if (sharedValue !== undefined) return sharedValue as Value;
    if (this.#values.size >= this.#maxEntries || this.#valueCharacters + json.length > this.#maxCharacters) {
      this.#values.clear();
      this.#valueCharacters = 0;
    }
    this.#values.set(json, value);
    this.#valueCharacters += json.length;
    return value;
  }
}

/**
 * With `metadataOnly`, keeps only metadata, even if the server sends more.
 *
 * @param object of the resource's kind
 */
export function trimObject(
  object: JsonObject & { readonly metadata: ObjectMeta },
  resource: ApiResource,
  sharedTexts: SharedTexts,
  { metadataOnly = false, keepsData = false, digestsData = false }: RetainedParts = {},
): KubernetesObject {
  const { apiVersion: _, kind: __, metadata, ...body } = object;
  const pickFields = keepsData ? undefined : retainedFieldsByKind.get(`${resource.group}/${resource.kind}`);
  const fields = metadataOnly ? {} : (pickFields?.(body, sharedTexts) ?? body);
  return {
    // List items have no `apiVersion`.
    apiVersion: sharedTexts.shareText(apiVersionOf(resource)),
    kind: sharedTexts.shareText(resource.kind),
    metadata: keepsData
      ? fullMetadata(metadata)
      : trimmedMetadata(metadata, sharedTexts, retainedAnnotationsOf(pickFields)),
    ...(digestsData ? digestFields(fields) : fields),
  };
}

export type RetainedParts = Pick<ObjectSelection, 'metadataOnly' | 'keepsData' | 'digestsData'>;

/** Keeps all metadata, for the few objects that are selected by name. */
function fullMetadata({ managedFields: _, selfLink: __, ...metadata }: ObjectMeta): ObjectMeta {
  return metadata;
}

function retainedAnnotationsOf(
  pickFields: ((object: JsonObject, sharedTexts: SharedTexts) => JsonObject) | undefined,
): RegExp | undefined {
  if (pickFields === namespaceFields) return retainedNamespaceAnnotations;
  return pickFields === undefined || pickFields === serviceFields ? retainedAnnotations : undefined;
}

function trimmedMetadata(
  metadata: ObjectMeta,
  sharedTexts: SharedTexts,
  readAnnotations: RegExp | undefined,
): ObjectMeta {
  const { labels, annotations, namespace } = metadata;
  return {
    ...pickNamedFields(metadata, retainedMetadata),
    ...(typeof namespace === 'string' && { namespace: sharedTexts.shareText(namespace) }),
    ...(isRecord(labels) && { labels: sharedTexts.shareValue(sharedEntries(labels, sharedTexts)) }),
    ...(readAnnotations &&
      isRecord(annotations) && {
        annotations: sharedTexts.shareValue(
          sharedEntries(annotations, sharedTexts, (key) => readAnnotations.test(key)),
        ),
      }),
  } as ObjectMeta;
}

function sharedEntries(
  entries: JsonObject,
  sharedTexts: SharedTexts,
  isRead = (_: string) => true,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(entries)
      .filter(([key, value]) => key !== lastAppliedAnnotation && typeof value === 'string' && isRead(key))
      .map(([key, value]) => [sharedTexts.shareText(key), sharedTexts.shareText(value as string)]),
  );
}

export function digestOf(text: string): string {
  return `sha256:${hash('sha256', text, 'hex')}`;
}

function digestFields({ data }: JsonObject): JsonObject {
  if (!isRecord(data)) return {};
  const texts = Object.entries(data).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return { data: Object.fromEntries(texts.map(([key, text]) => [key, digestOf(text)])) };
}

/**
 * Keys of used credentials (`src/model/kinds/kubernetes/credential.ts`). Passwords of other programs are not stored.
 */
const credentialKeys = [
  ...['tls.crt', 'tls.key', 'tls.ocsp-staple', 'cert', 'key', 'ca.crt', 'cacert', 'crl', 'ca.crl'],
  pullSecretKey,
];
/** Keys that are used, including those of mesh configuration and mesh root (`src/discovery/controllers/root-certificates.ts`). */
const configMapKeys = ['ca.crt', 'cacert', 'mesh', 'meshNetworks', 'root-cert.pem'];

function secretFields({ type, data }: JsonObject, sharedTexts: SharedTexts): JsonObject {
  return {
    ...(typeof type === 'string' && { type: sharedTexts.shareText(type) }),
    ...(isRecord(data) && { data: pickNamedFields(data, credentialKeys) }),
  };
}

function configMapFields({ data, binaryData }: JsonObject): JsonObject {
  return {
    ...(isRecord(data) && { data: pickNamedFields(data, configMapKeys) }),
    ...(isRecord(binaryData) && { binaryData: pickNamedFields(binaryData, configMapKeys) }),
  };
}

function podFields({ spec, status }: JsonObject, sharedTexts: SharedTexts): JsonObject {
  const pickedFields = pickNamedFields(spec, ['nodeName', 'serviceAccountName', 'hostname', 'subdomain'], sharedTexts);
  const { containers, initContainers } = isRecord(spec) ? spec : {};
  const withPorts = containersWithPorts(containers, sharedTexts);
  const sidecars = containersWithPorts(initContainers, sharedTexts).filter(
    ({ restartPolicy }) => restartPolicy === 'Always',
  );
  const state = pickNamedFields(status, ['phase', 'podIP', 'podIPs'], sharedTexts);
  const conditions = listOf(isRecord(status) ? status.conditions : undefined)
    .map((condition) => pickNamedFields(condition, ['type', 'status'], sharedTexts))
    .filter(({ type }) => type === 'Ready');
  return {
    spec: {
      ...{ ...pickedFields, containers: sharedTexts.shareValue(withPorts) },
      ...(sidecars.length > 0 && { initContainers: sharedTexts.shareValue(sidecars) }),
    },
    status: { ...state, conditions: sharedTexts.shareValue(conditions) },
  };
}

function serviceFields({ spec, status }: JsonObject, sharedTexts: SharedTexts): JsonObject {
  const { ports, selector } = isRecord(spec) ? spec : {};
  return {
    spec: {
      ...pickNamedFields(
        spec,
        [
          ...['type', 'clusterIP', 'clusterIPs', 'externalName', 'externalIPs', 'internalTrafficPolicy'],
          ...['publishNotReadyAddresses', 'sessionAffinity', 'trafficDistribution'],
        ],
        sharedTexts,
      ),
      ...(isRecord(selector) && { selector: sharedTexts.shareValue(sharedEntries(selector, sharedTexts)) }),
      ...(ports !== undefined && {
        ports: pickFieldsOfEach(
          ports,
          ['name', 'port', 'protocol', 'appProtocol', 'targetPort', 'nodePort'],
          sharedTexts,
        ),
      }),
    },
    ...(isRecord(status) &&
      isRecord(status.loadBalancer) &&
      Array.isArray(status.loadBalancer.ingress) && {
        status: {
          loadBalancer: { ingress: pickFieldsOfEach(status.loadBalancer.ingress, ['ip', 'hostname'], sharedTexts) },
        },
      }),
  };
}

function sliceFields({ addressType, endpoints, ports }: JsonObject, sharedTexts: SharedTexts): JsonObject {
  const endpointFields = ['addresses', 'conditions', 'hostname', 'nodeName', 'targetRef'];
  const referenceFields = ['kind', 'name', 'namespace'];
  return {
    ...(addressType !== undefined && { addressType }),
    ...(endpoints !== undefined && {
      endpoints: Array.isArray(endpoints)
        ? endpoints.map((endpoint) => {
            if (!isRecord(endpoint)) return endpoint;
            const pickedFields = pickNamedFields(endpoint, endpointFields, sharedTexts);
            const { conditions, targetRef } = pickedFields;
            if (isRecord(conditions)) pickedFields.conditions = sharedTexts.shareValue(conditions);
            if (isRecord(targetRef)) pickedFields.targetRef = pickNamedFields(targetRef, referenceFields, sharedTexts);
            return pickedFields;
          })
        : endpoints,
    }),
    ...(ports !== undefined && { ports: pickFieldsOfEach(ports, ['name', 'port'], sharedTexts) }),
  };
}

/** Keeps values of a wrong type, so that the decoder rejects them. */
function pickFieldsOfEach(values: unknown, names: readonly string[], sharedTexts: SharedTexts): unknown {
  if (!Array.isArray(values)) return values;
  return values.map((value) => (isRecord(value) ? pickNamedFields(value, names, sharedTexts) : value));
}

function namespaceFields(): JsonObject {
  return {};
}

/** Keeps only the field of `nodeInfo` that determines whether pods get a native sidecar. */
function nodeFields({ status }: JsonObject, sharedTexts: SharedTexts): JsonObject {
  const nodeInfo = isRecord(status) ? pickNamedFields(status.nodeInfo, ['kubeletVersion'], sharedTexts) : {};
  return {
    status: { ...pickNamedFields(status, ['addresses']), ...(nodeInfo.kubeletVersion !== undefined && { nodeInfo }) },
  };
}

function containersWithPorts(containers: unknown, sharedTexts: SharedTexts): JsonObject[] {
  return listOf(containers)
    .map((container) => pickNamedFields(container, ['ports', 'restartPolicy'], sharedTexts))
    .filter((container) => listOf(container.ports).length > 0)
    .map((container) => ({
      ...container,
      ports: listOf(container.ports).map((port) =>
        pickNamedFields(port, ['name', 'containerPort', 'protocol'], sharedTexts),
      ),
    }));
}

function pickNamedFields(value: unknown, names: readonly string[], sharedTexts?: SharedTexts): Record<string, unknown> {
  if (!isRecord(value)) return {};
  // Called for each object of a list. The names are constants, so they are safe as keys.
  const fields = {} as Record<(typeof names)[number], unknown>;
  for (const name of names) {
    const field = value[name];
    if (field === undefined) continue;
    fields[name] = sharedTexts !== undefined && typeof field === 'string' ? sharedTexts.shareText(field) : field;
  }
  return fields;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function isRecord(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
