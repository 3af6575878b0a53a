/** Whether a client is what it says it is: its identity against its node (spec/discovery.md §7.2 #9). */
import { workloadIdentityOf } from '../../identity/spiffe-id.ts';
import type { NodeIdentity } from './resource-source.ts';

/**
 * A client without identities is accepted: nothing was asked of it. Others need one of the node's own namespace and, if
 * the node names its service account, of this account.
 *
 * @returns the identity that is the node's, or why there is none
 */
export function authorize(
  node: NodeIdentity,
  identities: readonly string[],
): { readonly identity: string | undefined } | { readonly reason: string } {
  if (identities.length === 0) return { identity: undefined };
  const namespace = namespaceOf(node);
  const account = textOf(node.metadata.SERVICE_ACCOUNT);
  const identity = identities.find((one) => {
    const workload = workloadIdentityOf(one);
    return workload?.namespace === namespace && (account === undefined || workload.serviceAccount === account);
  });
  if (identity !== undefined) return { identity };
  const wanted = account === undefined ? `namespace ${namespace}` : `${namespace}/${account}`;
  return { reason: `no identity of ${wanted} among ${identities.join(', ')}` };
}

/** Where the node's configuration lies: what its metadata says, else the first label of its domain. */
function namespaceOf({ id, metadata }: NodeIdentity): string {
  return textOf(metadata.NAMESPACE) ?? id.split('~')[3]?.split('.')[0] ?? '';
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
