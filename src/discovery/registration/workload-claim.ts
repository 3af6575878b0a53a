/** Which WorkloadEntry a connection asks for by `AUTO_REGISTER_GROUP` (spec/discovery.md §5.5, §7.2), and whether it may have it. */
import * as E from 'fp-ts/lib/Either.js';
import type { EntryKey } from '../../../machines/discovery/registration/registration-protocol.ts';
import type { EndCode } from '../../../machines/discovery/xds/ads-protocol.ts';
import { oneWorkloadOf } from '../../identity/spiffe-id.ts';
import { isObjectName } from '../../model/fields/names.ts';
import { parseNode } from '../../model/node/parse-node.ts';
import { specialUseOf } from '../../runtime/addresses/special-address.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { NodeIdentity } from '../xds/resource-source.ts';

/** What a workload is registered as. What it says of itself is here as well, and is no more than its word. */
export interface WorkloadClaim {
  readonly entry: EntryKey;
  readonly namespace: string;
  readonly name: string;
  readonly group: string;
  /** Which its client has shown to be its own. */
  readonly serviceAccount: string;
  readonly address: string;
  readonly network: string;
  readonly locality: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The workload says how it is; until then it counts as unhealthy. */
  readonly isProbed: boolean;
}

/** Why a connection ends instead. */
export interface Rejection {
  readonly code: EndCode;
  readonly reason: string;
}

/** Characters that an object's name may have. */
const maxName = 253;
/** What it says of labels goes into an object of the API server. */
const maxLabelCharacters = 16_384;

/** Whether a node asks to be registered. */
export function asksToRegister({ metadata }: NodeIdentity): boolean {
  const { AUTO_REGISTER_GROUP: group } = metadata;
  return group !== undefined && group !== null && group !== '';
}

/**
 * What a node that asks to be registered would be registered as.
 *
 * @param clusterAliases as for any node
 */
export function claimOf(
  node: NodeIdentity,
  clusterAliases: Readonly<Record<string, string>> = {},
): WorkloadClaim | Rejection {
  const { AUTO_REGISTER_GROUP: group } = node.metadata;
  if (typeof group !== 'string' || !isObjectName(group)) {
    return invalid(`metadata AUTO_REGISTER_GROUP must be the name of a WorkloadGroup, got ${quoted(group)}`);
  }
  const parsed = parseNode(node, clusterAliases);
  if (E.isLeft(parsed)) return invalid(parsed.left);
  const { configNamespace: namespace, ipAddresses, network, locality, labels } = parsed.right;
  const address = ipAddresses[0]!.toLowerCase();
  const identity = identityIn(node, namespace);
  if (identity === undefined) {
    return {
      code: 'PERMISSION_DENIED',
      reason: `registration of ${namespace}/${group} requires a verified identity of namespace ${namespace}`,
    };
  }
  const addressError = errorOfAddress(address);
  if (addressError !== undefined) return invalid(addressError);
  if (JSON.stringify(labels).length > maxLabelCharacters)
    return invalid(`metadata LABELS must have at most ${maxLabelCharacters} characters as JSON`);
  const name = entryName(group, address, network);
  if (!isObjectName(name)) {
    return invalid(
      `the name of the WorkloadEntry (group, address and network) must be a valid object name, got ${quoted(name)}`,
    );
  }
  return {
    ...{ entry: `${namespace}/${name}`, namespace, name, group, address, network, locality, labels },
    serviceAccount: identity,
    isProbed: isProbed(node.metadata.PROXY_CONFIG),
  };
}

/** `<group>-<ip>[-<network>]`; one that is too long loses its beginning. Which group it is of, its annotation says. */
export function entryName(group: string, address: string, network: string): string {
  const name = [group, address.replaceAll(':', '-'), ...(network === '' ? [] : [network])].join('-');
  return name.length <= maxName ? name : name.slice(-maxName).replace(/^[^a-z0-9]+/, '');
}

/** The service account of the namespace that the client has shown to be; undefined: it has shown none. */
function identityIn({ verifiedIdentity, identities = [] }: NodeIdentity, namespace: string): string | undefined {
  const shown = oneWorkloadOf(verifiedIdentity === undefined ? identities : [verifiedIdentity]);
  return shown?.namespace === namespace ? shown.serviceAccount : undefined;
}

/** An address that every host has, or that leads to one's own host, link or cloud, would send a client's requests there. */
function errorOfAddress(address: string): string | undefined {
  if (address.includes('%')) return `address must not have a zone, got ${address}`;
  const use = specialUseOf(address);
  return use && `address must be one of a workload, got ${address} (special use "${use}")`;
}

/** `PROXY_CONFIG` as an agent sends it. */
function isProbed(config: unknown): boolean {
  return isObject(config) && isObject(config.readinessProbe);
}

function invalid(reason: string): Rejection {
  return { code: 'INVALID_ARGUMENT', reason };
}

const quoted = (value: unknown): string => JSON.stringify(value)?.slice(0, 100) ?? 'nothing';
