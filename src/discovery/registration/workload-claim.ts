/** Clients request a WorkloadEntry with `AUTO_REGISTER_GROUP`. */
import * as E from 'fp-ts/lib/Either.js';
import type { EntryKey } from '../../../machines/discovery/registration/registration-protocol.ts';
import type { EndCode } from '../../../machines/discovery/xds/ads-protocol.ts';
import { singleWorkloadOf } from '../../identity/spiffe-id.ts';
import { isObjectName } from '../../model/fields/names.ts';
import { parseNode } from '../../model/node/parse-node.ts';
import { specialUseOf } from '../../runtime/addresses/special-address.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { NodeIdentity } from '../xds/resource-source.ts';

/** Reported metadata is unverified. */
export interface WorkloadClaim {
  readonly entry: EntryKey;
  readonly namespace: string;
  readonly name: string;
  readonly group: string;
  readonly serviceAccount: string;
  readonly address: string;
  readonly network: string;
  readonly locality: string;
  readonly labels: Readonly<Record<string, string>>;
  /** A workload that reports its health is unhealthy until the first report. */
  readonly isProbed: boolean;
}

export interface RegistrationRejection {
  readonly code: EndCode;
  readonly reason: string;
}

const maxNameLength = 253;
/** Reported labels are written to the API server. */
const maxLabelCharacters = 16_384;

export function requestsRegistration({ metadata }: NodeIdentity): boolean {
  const { AUTO_REGISTER_GROUP: group } = metadata;
  return group !== undefined && group !== null && group !== '';
}

/** @param clusterAliases cluster IDs by alias */
export function claimOf(
  node: NodeIdentity,
  clusterAliases: Readonly<Record<string, string>> = {},
): WorkloadClaim | RegistrationRejection {
  const { AUTO_REGISTER_GROUP: group } = node.metadata;
  if (typeof group !== 'string' || !isObjectName(group)) {
    return invalidClaim(`metadata AUTO_REGISTER_GROUP must be the name of a WorkloadGroup, got ${quoteValue(group)}`);
  }
  const parsedNode = parseNode(node, clusterAliases);
  if (E.isLeft(parsedNode)) return invalidClaim(parsedNode.left);
  const { configNamespace: namespace, ipAddresses, network, locality, labels } = parsedNode.right;
  const address = ipAddresses[0]!.toLowerCase();
  const identity = identityIn(node, namespace);
  if (identity === undefined) {
    return {
      code: 'PERMISSION_DENIED',
      reason: `registration of ${namespace}/${group} requires a verified identity of namespace ${namespace}`,
    };
  }
  const invalidAddress = addressError(address);
  if (invalidAddress !== undefined) return invalidClaim(invalidAddress);
  if (JSON.stringify(labels).length > maxLabelCharacters)
    return invalidClaim(`metadata LABELS must have at most ${maxLabelCharacters} characters as JSON`);
  const name = entryName(group, address, network);
  if (!isObjectName(name)) {
    return invalidClaim(
      `the name of the WorkloadEntry (group, address and network) must be a valid object name, got ${quoteValue(name)}`,
    );
  }
  return {
    ...{ entry: `${namespace}/${name}`, namespace, name, group, address, network, locality, labels },
    serviceAccount: identity,
    isProbed: isProbed(node.metadata.PROXY_CONFIG),
  };
}

/** `GROUP-IP[-NETWORK]`. If the name is too long, its beginning is omitted. An annotation contains the group. */
export function entryName(group: string, address: string, network: string): string {
  const name = [group, address.replaceAll(':', '-'), ...(network === '' ? [] : [network])].join('-');
  return name.length <= maxNameLength ? name : name.slice(-maxNameLength).replace(/^[^a-z0-9]+/, '');
}

function identityIn({ verifiedIdentity, identities = [] }: NodeIdentity, namespace: string): string | undefined {
  const workload = singleWorkloadOf(verifiedIdentity === undefined ? identities : [verifiedIdentity]);
  return workload?.namespace === namespace ? workload.serviceAccount : undefined;
}

/** Rejects addresses that every host has, or that belong to a client's host, link or cloud, because requests would be sent there. */
function addressError(address: string): string | undefined {
  if (address.includes('%')) return `address must not have a zone, got ${address}`;
  const specialUse = specialUseOf(address);
  return specialUse && `address must be one of a workload, got ${address} (special use "${specialUse}")`;
}

/** @param config `PROXY_CONFIG`, which an agent sends */
function isProbed(config: unknown): boolean {
  return isObject(config) && isObject(config.readinessProbe);
}

function invalidClaim(reason: string): RegistrationRejection {
  return { code: 'INVALID_ARGUMENT', reason };
}

const quoteValue = (value: unknown): string => JSON.stringify(value)?.slice(0, 100) ?? 'nothing';
