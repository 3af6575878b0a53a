/**
 * What is kept of an object that a list or watch brings: a whole pod takes 17.7 KB of heap, what is read of it 0.3 KB
 * (spec/kubernetes.md §1). A field that a decoder of `src/model/kinds` reads must be kept here.
 */
import { apiVersionOf, type Resource } from './api-resource.ts';
import type { KubernetesObject, ObjectMeta, Selection } from './api-server.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Written by kubectl: the whole object once more, as text. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

const keptOfKind = new Map<string, (object: Fields, shared: SharedTexts) => Fields>([
  ['Secret', secretFields],
  ['ConfigMap', configMapFields],
  ['Pod', podFields],
  ['Node', ({ status }) => ({ status: picked(status, ['addresses']) })],
  ['Namespace', () => ({})],
]);

/** Longer ones are hardly there twice, and would be kept a second time to be known again. */
const maxSharedCharacters = 1_000;

/** What many objects have, as names of nodes, sets of labels, ports of containers, is there once. It must not be changed. */
export class SharedTexts {
  readonly #texts = new Map<string, string>();
  /** By their JSON. */
  readonly #values = new Map<string, unknown>();
  readonly #most: number;

  constructor(most = 20_000) {
    this.#most = most;
  }

  /** Of them, bounded. */
  get size(): number {
    return Math.max(this.#texts.size, this.#values.size);
  }

  of(text: string): string {
    if (text.length > maxSharedCharacters) return text;
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    // Texts of objects that are gone would stay for ever.
    if (this.#texts.size >= this.#most) this.#texts.clear();
    this.#texts.set(text, text);
    return text;
  }

  /** Of a plain value: one that is the same. */
  same<Value extends object>(value: Value): Value {
    const json = JSON.stringify(value);
    if (json.length > maxSharedCharacters) return value;
    const known = this.#values.get(json);
    if (known !== undefined) return known as Value;
    if (this.#values.size >= this.#most) this.#values.clear();
    this.#values.set(json, value);
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
  { metadataOnly = false, keepsData = false }: Pick<Selection, 'metadataOnly' | 'keepsData'> = {},
): KubernetesObject {
  const { apiVersion: _, kind: __, metadata, ...body } = object;
  const kept = resource.group === '' && !keepsData ? keptOfKind.get(resource.kind) : undefined;
  return {
    // Items of a list do not say it.
    apiVersion: shared.of(apiVersionOf(resource)),
    kind: shared.of(resource.kind),
    metadata: trimmedMetadata(kept === podFields ? withoutOwners(metadata) : metadata, shared),
    ...(metadataOnly ? {} : (kept?.(body, shared) ?? body)),
  };
}

function trimmedMetadata(metadata: ObjectMeta, shared: SharedTexts): ObjectMeta {
  const { managedFields: _, selfLink: __, labels, annotations, namespace, ...rest } = metadata;
  return {
    ...rest,
    ...(typeof namespace === 'string' && { namespace: shared.of(namespace) }),
    ...(isRecord(labels) && { labels: shared.same(sharedEntries(labels, shared)) }),
    ...(isRecord(annotations) && { annotations: shared.same(sharedEntries(annotations, shared)) }),
  };
}

/** Half of a pod's metadata, and never read. */
function withoutOwners({ ownerReferences: _, generateName: __, ...rest }: ObjectMeta): ObjectMeta {
  return rest;
}

function sharedEntries(entries: Fields, shared: SharedTexts): Record<string, string> {
  return Object.fromEntries(
    Object.entries(entries)
      .filter(([key, value]) => key !== lastApplied && typeof value === 'string')
      .map(([key, value]) => [shared.of(key), shared.of(value as string)]),
  );
}

/** What a credential may be of (`src/model/kinds/kubernetes/credential.ts`): no password of anybody else's is kept. */
const credentialKeys = ['tls.crt', 'tls.key', 'tls.ocsp-staple', 'cert', 'key', 'ca.crt', 'cacert', 'ca.crl'];
/** And what the mesh configuration is under, and the root of the mesh (`src/discovery/leader/root-certificates.ts`). */
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
  const kept = picked(spec, ['nodeName', 'serviceAccountName', 'hostNetwork', 'hostname', 'subdomain'], shared);
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

function picked(value: unknown, names: readonly string[], shared?: SharedTexts): Fields {
  if (!isRecord(value)) return {};
  return Object.fromEntries(
    names
      .filter((name) => value[name] !== undefined)
      .map((name) => {
        const field = value[name];
        return [name, shared !== undefined && typeof field === 'string' ? shared.of(field) : field];
      }),
  );
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
