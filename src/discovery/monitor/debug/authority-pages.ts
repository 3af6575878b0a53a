/** The page also accepts operators' requests to rotate the root (docs/identity.md). */
import type { OperatorOrder } from '../../../../machines/discovery/ca/authority-protocol.ts';
import { type AuthorityPageSource, type DebugPage, okReply, type PageRequest, textReply } from './debug-page.ts';

const orderTypes: Readonly<Record<string, OperatorOrder['type']>> = {
  rotate: 'rotation.start',
  revert: 'rotation.revert',
  taint: 'rotation.taint',
  proceed: 'rotation.proceed',
};

export const authorityPages: readonly DebugPage[] = [
  {
    path: 'authorityz',
    description:
      'certificate authority: signer, trusted roots, workloads that a rotation waits for; POST ?order=rotate starts a rotation, taint renews the certificates of the tainted root as soon as the next root signs, revert undoes the last step, proceed&force=true continues without the awaited workloads',
    changes: (query) => query.has('order'),
    respond: ({ authority }, request) => {
      if (authority === undefined)
        return textReply('this control plane has no certificate authority, see docs/identity.md', 404);
      const orderName = request.query.get('order');
      if (orderName === null) return okReply(authority.describe());
      if (authority.orderedBy !== undefined) return textReply(`rejected: ${authority.orderedBy}`, 409);
      const rejectionReply =
        rejectionReplyOf(orderName, request) ??
        (orderName === 'proceed' ? rejectCutOff(authority, request) : undefined);
      if (rejectionReply !== undefined) return rejectionReply;
      const reason = authority.rotate(orderTypes[orderName]!);
      if (reason !== undefined) return textReply(`rejected: ${reason}`, 409);
      return textReply('accepted: GET this page for the progress', 202);
    },
  },
];

function rejectionReplyOf(orderName: string, { caller }: PageRequest) {
  if (!Object.hasOwn(orderTypes, orderName))
    return textReply(
      `order must be one of ${Object.keys(orderTypes).join(', ')}, got ${JSON.stringify(orderName.slice(0, 40))}`,
      400,
    );
  return caller === 'operator'
    ? undefined
    : textReply('forbidden: the root can be rotated only from this host, with the token of the debugger', 403);
}

/** An order to proceed must not cut off workloads, unless `force` is set. If it would cut off none, the rotation proceeds automatically. */
function rejectCutOff({ missingWorkloads: missing }: AuthorityPageSource, { query }: PageRequest) {
  const missingWorkloads = missing();
  if (missingWorkloads === undefined) return textReply('rejected: the rotation waits for no workload', 409);
  if (query.get('force') === 'true') return undefined;
  const { count, workloads } = missingWorkloads;
  const othersText = count > workloads.length ? ' and others' : '';
  return textReply(
    `rejected: ${count} workloads would lose their connections: ${workloads.join(', ')}${othersText}; add &force=true to continue without them`,
    409,
  );
}
