/**
 * What is kept of an object that a list or watch brings: a whole pod takes 17.7 KB of heap, what is read of it 0.3 KB
 * (spec/kubernetes.md §1). A field that a decoder of `src/model/kinds` reads must be kept here.
 */
import { hash } from 'node:crypto';
import { pullSecretKey } from '../../../model/kinds/kubernetes/pull-secret.ts';
import { apiVersionOf, type Resource } from '../api-resource.ts';
import type { KubernetesObject, ObjectMeta, Selection } from '../api-server.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Written by kubectl: the whole object once more, as text. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';
/** Annotations that anything here reads are of these domains; others may have 256 KiB of any text. */
const readAnnotation = /^(?:(?:[^/]*\.)?(?:istio|kubernetes|k8s)\.io|chartpilot)\//;
/** Users and groups that OpenShift assigns to a namespace: injection reads them. */
const readOfNamespace = /^openshift\.io\/sa\.scc\./;
/** Metadata that is read of objects. Controllers write others, of any size. */
const readMetadata = [
  ...['name', 'uid', 'resourceVersion', 'generation'],
  ...['creationTimestamp', 'deletionTimestamp'],
] as const;

const keptOfKind = new Map<string, (object: Fields, shared: SharedTexts) => Fields>([
  ['/Secret', secretFields],
  ['/ConfigMap', configMapFields],
  ['/Pod', podFields],
  ['/Node', nodeFields],
  ['/Namespace', namespaceFields],
  ['/Service', serviceFields],
  ['discovery.k8s.io/EndpointSlice', sliceFields],
]);

/** Longer ones are hardly there twice, and would be kept a second time to be known again. */
const maxSharedCharacters = 1_000;
/** All of them together, so that objects with many long texts do not fill the memory with what is kept to save some. */
const maxAllSharedCharacters = 4_000_000;

/** What many objects have, as names of nodes, sets of labels, ports of containers, is there once. It must not be changed. */
export class SharedTexts {
  readonly #texts = new Map<string, string>();
  /** By their JSON. */
  readonly #values = new Map<string, unknown>();
  readonly #maxEntries: number;
  readonly #maxCharacters: number;
  #textCharacters = 0;
  #valueCharacters = 0;

  /** @param maxCharacters of all texts, and of the JSON of all values */
  constructor(maxEntries = 20_000, maxCharacters = maxAllSharedCharacters) {
    this.#maxEntries = maxEntries;
    this.#maxCharacters = maxCharacters;
  }

  /** Of them, bounded. */
  get size(): number {
    return Math.max(this.#texts.size, this.#values.size);
  }

  /** Of all texts, and of the JSON of all values. */
  get characters(): number {
    return Math.max(this.#textCharacters, this.#valueCharacters);
  }

  of(text: string): string {
    if (text.length > maxSharedCharacters) return text;
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    // Texts of objects that are gone would stay for ever.
    if (this.#texts.size >= this.#maxEntries || this.#textCharacters + text.length > this.#maxCharacters) {
      this.#texts.clear();
      this.#textCharacters = 0;
    }
    this.#texts.set(text, text);
    this.#textCharacters += text.length;
    return text;
  }

  /** Of a plain value: one that is the same. */
  same<Value extends object>(value: Value): Value {
    const json = JSON.stringify(value);
    if (json.length > maxSharedCharacters) return value;
    const known = this.#values.get(json);
    if (known !== undefined) return known as Value;
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
 * @param object as it came, of the resource's kind
 * @param selection with `metadataOnly` nothing else is kept, whatever the server sent
 */
export function trimmed(
  object: Fields & { readonly metadata: ObjectMeta },
  resource: Resource,
  shared: SharedTexts,
  { metadataOnly = false, keepsData = false, digestsData = false }: KeptParts = {},
): KubernetesObject {
  const { apiVersion: _, kind: __, metadata, ...body } = object;
  const kept = keepsData ? undefined : keptOfKind.get(`${resource.group}/${resource.kind}`);
  const fields = metadataOnly ? {} : (kept?.(body, shared) ?? body);
  return {
    // Items of a list do not say it.
    apiVersion: shared.of(apiVersionOf(resource)),
    kind: shared.of(resource.kind),
    metadata: keepsData ? wholeMetadata(metadata) : trimmedMetadata(metadata, shared, annotationsReadOf(kept)),
    ...(digestsData ? digested(fields) : fields),
  };
}

export type KeptParts = Pick<Selection, 'metadataOnly' | 'keepsData' | 'digestsData'>;

/** Of few objects, which were selected by their names. */
function wholeMetadata({ managedFields: _, selfLink: __, ...metadata }: ObjectMeta): ObjectMeta {
  return metadata;
}

/** @param hasAnnotations false for kinds of which no annotation is read */
/** @returns `undefined`: none of them */
function annotationsReadOf(kept: ((object: Fields, shared: SharedTexts) => Fields) | undefined): RegExp | undefined {
  if (kept === namespaceFields) return readOfNamespace;
  return kept === undefined || kept === serviceFields ? readAnnotation : undefined;
}

function trimmedMetadata(metadata: ObjectMeta, shared: SharedTexts, readAnnotations: RegExp | undefined): ObjectMeta {
  const { labels, annotations, namespace } = metadata;
  return {
    ...picked(metadata, readMetadata),
    ...(typeof namespace === 'string' && { namespace: shared.of(namespace) }),
    ...(isRecord(labels) && { labels: shared.same(sharedEntries(labels, shared)) }),
    ...(readAnnotations &&
      isRecord(annotations) && {
        annotations: shared.same(sharedEntries(annotations, shared, (key) => readAnnotations.test(key))),
      }),
  } as ObjectMeta;
}

function sharedEntries(entries: Fields, shared: SharedTexts, isRead = (_: string) => true): Record<string, string> {
  return Object.fromEntries(
    Object.entries(entries)
      .filter(([key, value]) => key !== lastApplied && typeof value === 'string' && isRead(key))
      .map(([key, value]) => [shared.of(key), shared.of(value as string)]),
  );
}

/** SHA-256 of a value, as `digestsData` leaves it. */
export function digestOf(text: string): string {
  return `sha256:${hash('sha256', text, 'hex')}`;
}

function digested({ data }: Fields): Fields {
  if (!isRecord(data)) return {};
  const texts = Object.entries(data).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return { data: Object.fromEntries(texts.map(([key, text]) => [key, digestOf(text)])) };
}

/** What a credential may be of (`src/model/kinds/kubernetes/credential.ts`): no password of anybody else's is kept. */
const credentialKeys = [
  ...['tls.crt', 'tls.key', 'tls.ocsp-staple', 'cert', 'key', 'ca.crt', 'cacert', 'crl', 'ca.crl'],
  pullSecretKey,
];
/** And what the mesh configuration is under, and the root of the mesh (`src/discovery/controllers/root-certificates.ts`). */
const configMapKeys = ['ca.crt', 'cacert', 'mesh', 'meshNetworks', 'root-cert.pem'];

function secretFields({ type, data }: Fields, shared: SharedTexts): Fields {
  return {
    ...(typeof type === 'string' && { type: shared.of(type) }),
    ...(isRecord(data) && { data: picked(data, credentialKeys) }),
  };
}

function configMapFields({ data, binaryData }: Fields): Fields {
  return {
    ...(isRecord(data) && { data: picked(data, configMapKeys) }),
    ...(isRecord(binaryData) && { binaryData: picked(binaryData, configMapKeys) }),
  };
}

function podFields({ spec, status }: Fields, shared: SharedTexts): Fields {
  const kept = picked(spec, ['nodeName', 'serviceAccountName', 'hostname', 'subdomain'], shared);
  const { containers, initContainers } = isRecord(spec) ? spec : {};
  const withPorts = containersWithPorts(containers, shared);
  const sidecars = containersWithPorts(initContainers, shared).filter(
    ({ restartPolicy }) => restartPolicy === 'Always',
  );
  const state = picked(status, ['phase', 'podIP', 'podIPs'], shared);
  const conditions = listOf(isRecord(status) ? status.conditions : undefined)
    .map((condition) => picked(condition, ['type', 'status'], shared))
    // Of the others nothing is asked.
    .filter(({ type }) => type === 'Ready');
  return {
    spec: {
      ...{ ...kept, containers: shared.same(withPorts) },
      ...(sidecars.length > 0 && { initContainers: shared.same(sidecars) }),
    },
    status: { ...state, conditions: shared.same(conditions) },
  };
}

/** What `src/model/kinds/kubernetes/service.ts` decodes. */
function serviceFields({ spec, status }: Fields, shared: SharedTexts): Fields {
  const { ports, selector } = isRecord(spec) ? spec : {};
  return {
    spec: {
      ...picked(
        spec,
        [
          ...['type', 'clusterIP', 'clusterIPs', 'externalName', 'externalIPs', 'internalTrafficPolicy'],
          ...['publishNotReadyAddresses', 'sessionAffinity', 'trafficDistribution'],
        ],
        shared,
      ),
      ...(isRecord(selector) && { selector: shared.same(sharedEntries(selector, shared)) }),
      ...(ports !== undefined && {
        ports: pickedOfEach(ports, ['name', 'port', 'protocol', 'appProtocol', 'targetPort', 'nodePort'], shared),
      }),
    },
    ...(isRecord(status) &&
      isRecord(status.loadBalancer) &&
      Array.isArray(status.loadBalancer.ingress) && {
        status: { loadBalancer: { ingress: pickedOfEach(status.loadBalancer.ingress, ['ip', 'hostname'], shared) } },
      }),
  };
}

/** What `src/model/kinds/kubernetes/endpoint-slice.ts` decodes. */
function sliceFields({ addressType, endpoints, ports }: Fields, shared: SharedTexts): Fields {
  const ofEndpoint = ['addresses', 'conditions', 'hostname', 'nodeName', 'targetRef'];
  const ofReference = ['kind', 'name', 'namespace'];
  return {
    ...(addressType !== undefined && { addressType }),
    ...(endpoints !== undefined && {
      endpoints: Array.isArray(endpoints)
        ? endpoints.map((endpoint) => {
            if (!isRecord(endpoint)) return endpoint;
            const kept = picked(endpoint, ofEndpoint, shared);
            const { conditions, targetRef } = kept;
            if (isRecord(conditions)) kept.conditions = shared.same(conditions);
            if (isRecord(targetRef)) kept.targetRef = picked(targetRef, ofReference, shared);
            return kept;
          })
        : endpoints,
    }),
    ...(ports !== undefined && { ports: pickedOfEach(ports, ['name', 'port'], shared) }),
  };
}

/** What is no list, or no object, is left for the decoder to refuse. */
function pickedOfEach(values: unknown, names: readonly string[], shared: SharedTexts): unknown {
  if (!Array.isArray(values)) return values;
  return values.map((value) => (isRecord(value) ? picked(value, names, shared) : value));
}

function namespaceFields(): Fields {
  return {};
}

/** Of `nodeInfo` what decides whether pods get a native sidecar. */
function nodeFields({ status }: Fields, shared: SharedTexts): Fields {
  const nodeInfo = isRecord(status) ? picked(status.nodeInfo, ['kubeletVersion'], shared) : {};
  return { status: { ...picked(status, ['addresses']), ...(nodeInfo.kubeletVersion !== undefined && { nodeInfo }) } };
}

/** Of the others nothing is asked; of init containers, which of them go on running. */
function containersWithPorts(containers: unknown, shared: SharedTexts): Fields[] {
  return listOf(containers)
    .map((container) => picked(container, ['ports', 'restartPolicy'], shared))
    .filter((container) => listOf(container.ports).length > 0)
    .map((container) => ({
      ...container,
      ports: listOf(container.ports).map((port) => picked(port, ['name', 'containerPort', 'protocol'], shared)),
    }));
}

function picked(value: unknown, names: readonly string[], shared?: SharedTexts): Record<string, unknown> {
  if (!isRecord(value)) return {};
  // Names are those of the caller. Each object of a list has this done for all of its fields.
  const fields = {} as Record<(typeof names)[number], unknown>;
  for (const name of names) {
    const field = value[name];
    if (field === undefined) continue;
    fields[name] = shared !== undefined && typeof field === 'string' ? shared.of(field) : field;
  }
  return fields;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
