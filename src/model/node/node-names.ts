/** No other module reads these names from a node's metadata, so that authentication checks the same names. */
import * as E from 'fp-ts/lib/Either.js';
import { isNamespace } from '../fields/names.ts';

export interface NamedNode {
  readonly id: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface NodeNames {
  /** Metadata `NAMESPACE`, else the first label of the DNS domain in the node ID. */
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly clusterId: string;
  readonly network: string;
}

const metadataKeys = ['NAMESPACE', 'SERVICE_ACCOUNT', 'CLUSTER_ID', 'NETWORK'] as const;
type NodeMetadataKey = (typeof metadataKeys)[number];

/** Maximum length of a Kubernetes name. Bounds cache keys, because clients choose these names. */
const maxNameLength = 253;
const maxQuotedLength = 100;

export function readNodeNames({ id, metadata }: NamedNode): E.Either<string, NodeNames> {
  const texts: Partial<Record<NodeMetadataKey, string>> = {};
  for (const key of metadataKeys) {
    // protobuf's NullValue and an empty string count as unset, as in Istio.
    const value = Object.hasOwn(metadata, key) ? (metadata[key] ?? '') : '';
    if (typeof value !== 'string') return E.left(`metadata ${key} must be a string, got ${quoteValue(value)}`);
    if (value.length > maxNameLength)
      return E.left(`metadata ${key} must have at most ${maxNameLength} characters, got ${value.length}`);
    texts[key] = value;
  }
  const { NAMESPACE = '', SERVICE_ACCOUNT = '', CLUSTER_ID = '', NETWORK = '' } = texts;
  if (NAMESPACE !== '' && !isNamespace(NAMESPACE))
    return E.left(`metadata NAMESPACE must be the name of a namespace, got ${quoteValue(NAMESPACE)}`);
  const namespace = NAMESPACE || (id.split('~')[3]?.split('.', 1)[0] ?? '');
  if (namespace.length > maxNameLength)
    return E.left(`the namespace in the node's id must have at most ${maxNameLength} characters`);
  return E.right({ namespace, serviceAccount: SERVICE_ACCOUNT, clusterId: CLUSTER_ID, network: NETWORK });
}

function quoteValue(value: unknown): string {
  return JSON.stringify(value).slice(0, maxQuotedLength);
}
