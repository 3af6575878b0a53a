import * as E from 'fp-ts/lib/Either.js';
import { isObject } from '../../runtime/json-object.ts';
import { scalarText } from '../../runtime/scalar-text.ts';
import { joinLocality, localityOf } from '../fields/locality.ts';
import { isIpAddress } from '../fields/names.ts';
import type { EnvoyBuild } from './envoy-build.ts';
import { readNodeNames } from './node-names.ts';
import type { NodeType, Proxy, ProxyInterceptionMode } from './proxy.ts';

export interface NodeFields {
  readonly id: string;
  readonly cluster: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly locality?: { readonly region: string; readonly zone: string; readonly subZone: string };
  readonly envoy?: EnvoyBuild;
}

const servedTypes: ReadonlySet<string> = new Set<NodeType>(['sidecar', 'router']);
const unservedTypes: ReadonlySet<string> = new Set(['waypoint', 'ztunnel', 'agentgateway']);

/**
 * @param clusterAliases maps aliases to cluster IDs (`--clusterAliases`)
 * @returns left: a sentence about the invalid field
 */
export function parseNode(
  node: NodeFields,
  clusterAliases: Readonly<Record<string, string>> = {},
): E.Either<string, Proxy> {
  if (node.id === '') return E.left('missing node information: node id is required');
  const nodeIdParts = node.id.split('~');
  const [type = '', ip = '', name = '', dnsDomain = ''] = nodeIdParts;
  if (nodeIdParts.length !== 4) return E.left(`node id ${quoteText(node.id)} must have four parts: type~ip~id~domain`);
  if (unservedTypes.has(type)) return E.left(`node id ${quoteText(node.id)}: node type ${type} is not supported`);
  if (!servedTypes.has(type))
    return E.left(`node id ${quoteText(node.id)}: node type must be sidecar or router, got ${quoteText(type)}`);
  const { metadata } = node;
  const generator = generatorViolation(metadata.GENERATOR, type);
  if (generator !== undefined) return E.left(`node id ${quoteText(node.id)}: ${generator}`);
  const ipAddresses = addressesOf(metadata.INSTANCE_IPS, ip);
  if (ipAddresses.length === 0) {
    return E.left(
      `node id ${quoteText(node.id)}: INSTANCE_IPS or the second part of the id must be a valid IP address`,
    );
  }
  const labels = labelsOf(metadata.LABELS);
  if (labels === undefined) return E.left(`node id ${quoteText(node.id)}: metadata LABELS must be a map of strings`);
  const names = readNodeNames(node);
  if (E.isLeft(names)) return E.left(`node id ${quoteText(node.id)}: ${names.left}`);
  const { namespace, serviceAccount, clusterId, network } = names.right;
  const { region, zone, subZone } = node.locality ?? { region: '', zone: '', subZone: '' };
  return E.right({
    id: node.id,
    type: type as NodeType,
    ipAddresses,
    name,
    configNamespace: namespace,
    dnsDomain,
    cluster: node.cluster,
    labels,
    clusterId: Object.hasOwn(clusterAliases, clusterId) ? clusterAliases[clusterId]! : clusterId,
    network,
    serviceAccount,
    interceptionMode: interceptionModeOf(metadata.INTERCEPTION_MODE),
    locality: localityOf(labels, joinLocality(region, zone, subZone)),
    ...(node.envoy && { envoy: node.envoy }),
    ...(isProxyless(metadata) && { proxyless: true as const }),
    metadata,
  });
}

/** Rejects clients that need other resources than Envoy, except proxyless gRPC. */
function generatorViolation(generator: unknown, type: string): string | undefined {
  if (generator === undefined || generator === null || generator === '') return undefined;
  if (isProxyless({ GENERATOR: generator })) {
    return type === 'sidecar'
      ? undefined
      : `node type must be sidecar if metadata GENERATOR is "grpc", got ${quoteText(type)}`;
  }
  const quotedGenerator = JSON.stringify(generator).slice(0, maxQuotedLength);
  return `metadata GENERATOR must be "grpc" or must not be set, got ${quotedGenerator}`;
}

export function isProxyless({ GENERATOR }: NodeFields['metadata']): boolean {
  return GENERATOR === 'grpc';
}

const maxQuotedLength = 100;

const quoteText = (text: string): string => JSON.stringify(text);

function addressesOf(instanceIps: unknown, fallback: string): readonly string[] {
  const addressTexts = Array.isArray(instanceIps) ? instanceIps.map(scalarText) : scalarText(instanceIps).split(',');
  const validAddresses = addressTexts.map((address) => address.trim()).filter(isIpAddress);
  return validAddresses.length > 0 ? [...new Set(validAddresses)] : [fallback].filter(isIpAddress);
}

/** Accepts a map or its JSON text; numbers and booleans become strings. */
function labelsOf(value: unknown): Readonly<Record<string, string>> | undefined {
  if (value === undefined || value === null || value === '') return {};
  const map = typeof value === 'string' ? parsedJson(value) : value;
  if (!isObject(map)) return undefined;
  const entries = Object.entries(map);
  if (entries.some(([, label]) => typeof label === 'object')) return undefined;
  return Object.fromEntries(entries.map(([key, label]) => [key, scalarText(label)]));
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function interceptionModeOf(value: unknown): ProxyInterceptionMode {
  return value === 'TPROXY' || value === 'NONE' ? value : 'REDIRECT';
}
