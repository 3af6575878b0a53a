/**
 * The names in a node's metadata that decide whose configuration it receives. They are read here only, so that the names that are
 * checked against the client's identity are the names that it is served by.
 */
import * as E from 'fp-ts/lib/Either.js';
import { isNamespace } from '../fields/names.ts';

/** The fields of xDS's `Node` that the names come from. */
export interface NamedNode {
  readonly id: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface NodeNames {
  /** Metadata `NAMESPACE`, else the first label of the domain in the node's id. */
  readonly namespace: string;
  /** Empty if the node names none. */
  readonly serviceAccount: string;
  readonly clusterId: string;
  readonly network: string;
}

const keys = ['NAMESPACE', 'SERVICE_ACCOUNT', 'CLUSTER_ID', 'NETWORK'] as const;
type Key = (typeof keys)[number];

/** Characters of a Kubernetes object's name. Caches are keyed by these names, which a client may choose. */
const maxNameLength = 253;
/** Characters of a rejected value that an error quotes. */
const maxQuoted = 100;

/** @returns the names, or the error of the first field that is not a string or cannot be such a name */
export function readNodeNames({ id, metadata }: NamedNode): E.Either<string, NodeNames> {
  const texts: Partial<Record<Key, string>> = {};
  for (const key of keys) {
    // protobuf's NullValue and an empty string both mean that the field is not set, as in Istio.
    const value = Object.hasOwn(metadata, key) ? (metadata[key] ?? '') : '';
    if (typeof value !== 'string') return E.left(`metadata ${key} must be a string, got ${quoted(value)}`);
    if (value.length > maxNameLength)
      return E.left(`metadata ${key} must have at most ${maxNameLength} characters, got ${value.length}`);
    texts[key] = value;
  }
  const { NAMESPACE = '', SERVICE_ACCOUNT = '', CLUSTER_ID = '', NETWORK = '' } = texts;
  if (NAMESPACE !== '' && !isNamespace(NAMESPACE))
    return E.left(`metadata NAMESPACE must be the name of a namespace, got ${quoted(NAMESPACE)}`);
  const namespace = NAMESPACE || (id.split('~')[3]?.split('.', 1)[0] ?? '');
  if (namespace.length > maxNameLength)
    return E.left(`the namespace in the node's id must have at most ${maxNameLength} characters`);
  return E.right({ namespace, serviceAccount: SERVICE_ACCOUNT, clusterId: CLUSTER_ID, network: NETWORK });
}

function quoted(value: unknown): string {
  return JSON.stringify(value).slice(0, maxQuoted);
}
