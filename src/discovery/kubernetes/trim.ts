/**
 * What is kept of an object that a list or watch brings: a whole pod takes 17.7 KB of heap, what is read of it 0.3 KB
 * (spec/kubernetes.md §1). A field that a decoder of `src/model/kinds` reads must be kept here.
 */
import { apiVersionOf, type Resource } from './api-resource.ts';
import type { KubernetesObject, ObjectMeta } from './api-server.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Written by kubectl: the whole object once more, as text. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration';

/** What a credential may be of, by `src/model/kinds/kubernetes/credential.ts`, and a remote cluster's Secret by its own keys. */
const keptOfKind = new Map<string, (object: Fields, shared: SharedTexts) => Fields>([
  ['Pod', podFields],
  ['Node', ({ status }) => ({ status: picked(status, ['addresses']) })],
  ['Namespace', () => ({})],
]);

/** Texts that many objects have, as labels and names of nodes, are there once. */
export class SharedTexts {
  readonly #texts = new Map<string, string>();
  readonly #most: number;

  constructor(most = 20_000) {
    this.#most = most;
  }

  /** Of them, bounded. */
  get size(): number {
    return this.#texts.size;
  }

  of(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    // Texts of objects that are gone would stay for ever.
    if (this.#texts.size >= this.#most) this.#texts.clear();
    this.#texts.set(text, text);
    return text;
  }
}

/**
 * @param object as it came, of the resource's kind
 * @param metadataOnly nothing else is kept, whatever the server sent
 */
export function trimmed(
  object: Fields & { readonly metadata: ObjectMeta },
  resource: Resource,
  shared: SharedTexts,
  metadataOnly = false,
): KubernetesObject {
  const { apiVersion: _, kind: __, metadata, ...body } = object;
  const kept = resource.group === '' ? keptOfKind.get(resource.kind) : undefined;
  return {
    // Items of a list do not say it.
    apiVersion: shared.of(apiVersionOf(resource)),
    kind: shared.of(resource.kind),
    metadata: trimmedMetadata(metadata, shared),
    ...(metadataOnly ? {} : (kept?.(body, shared) ?? body)),
  };
}

function trimmedMetadata(metadata: ObjectMeta, shared: SharedTexts): ObjectMeta {
  const { managedFields: _, selfLink: __, labels, annotations, namespace, ...rest } = metadata;
  return {
    ...rest,
    ...(typeof namespace === 'string' && { namespace: shared.of(namespace) }),
    ...(isRecord(labels) && { labels: sharedEntries(labels, shared) }),
    ...(isRecord(annotations) && { annotations: sharedEntries(annotations, shared) }),
  };
}

function sharedEntries(entries: Fields, shared: SharedTexts): Record<string, string> {
  return Object.fromEntries(
    Object.entries(entries)
      .filter(([key, value]) => key !== lastApplied && typeof value === 'string')
      .map(([key, value]) => [shared.of(key), shared.of(value as string)]),
  );
}

function podFields({ spec, status }: Fields, shared: SharedTexts): Fields {
  const kept = picked(spec, ['nodeName', 'serviceAccountName', 'hostNetwork', 'hostname', 'subdomain'], shared);
  const containers = listOf(isRecord(spec) ? spec.containers : undefined)
    .map((container) => picked(container, ['ports']))
    .filter((container) => listOf(container.ports).length > 0)
    .map(({ ports }) => ({
      ports: listOf(ports).map((port) => picked(port, ['name', 'containerPort', 'protocol'], shared)),
    }));
  const state = picked(status, ['phase', 'podIP', 'podIPs'], shared);
  const conditions = listOf(isRecord(status) ? status.conditions : undefined).map((condition) =>
    picked(condition, ['type', 'status'], shared),
  );
  return { spec: { ...kept, containers }, status: { ...state, conditions } };
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
