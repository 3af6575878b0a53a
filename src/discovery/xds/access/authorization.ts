import * as E from 'fp-ts/lib/Either.js';
import { workloadIdentityOf } from '../../../identity/spiffe-id.ts';
import { readNodeNames } from '../../../model/node/node-names.ts';
import type { NodeIdentity } from '../resource-source.ts';

/**
 * Accepts a client without identities, because its port requires none. Any other client must have exactly one identity: a workload in the node's
 * namespace and, if the node reports a service account, with that account.
 */
export function authorize(
  node: Pick<NodeIdentity, 'id' | 'metadata'>,
  identities: readonly string[],
): { readonly identity: string | undefined } | { readonly reason: string } {
  if (identities.length === 0) return { identity: undefined };
  const names = readNodeNames(node);
  if (E.isLeft(names)) return { reason: names.left };
  const { namespace, serviceAccount } = names.right;
  const [identity, ...otherIdentities] = identities;
  const workload = workloadIdentityOf(identity!);
  const isNode =
    otherIdentities.length === 0 &&
    workload?.namespace === namespace &&
    (serviceAccount === '' || workload.serviceAccount === serviceAccount);
  if (isNode) return { identity };
  const expectedText = serviceAccount === '' ? `namespace ${namespace}` : `${namespace}/${serviceAccount}`;
  return { reason: `expected exactly one identity, of ${expectedText}, got ${identities.join(', ')}` };
}
