/** The page of the certificate authority, and the orders that an operator gives it (docs/identity.md). */
import type { OperatorOrder } from '../../../../machines/discovery/ca/authority-protocol.ts';
import { type AuthorityPageSource, type DebugPage, ok, type PageRequest, text } from './debug-page.ts';

const orders: Readonly<Record<string, OperatorOrder['type']>> = {
  rotate: 'rotation.order',
  revert: 'rotation.revert',
  taint: 'rotation.taint',
  proceed: 'rotation.force',
};

export const authorityPages: readonly DebugPage[] = [
  {
    path: 'authorityz',
    description:
      'certificate authority: signer, trusted roots, workloads that a rotation waits for; POST ?order=rotate starts a rotation, taint renews all certificates at once, revert undoes the last step, proceed&force=true continues without the awaited workloads',
    changes: (query) => query.has('order'),
    answer: ({ authority }, request) => {
      if (authority === undefined)
        return text('this control plane has no certificate authority, see docs/identity.md', 404);
      const order = request.query.get('order');
      if (order === null) return ok(authority.describe());
      if (authority.orderedBy !== undefined) return text(`rejected: ${authority.orderedBy}`, 409);
      const refusal = refusalOf(order, request) ?? (order === 'proceed' ? cutOff(authority, request) : undefined);
      if (refusal !== undefined) return refusal;
      authority.rotate(orders[order]!);
      return text('accepted: GET this page for the progress', 202);
    },
  },
];

/** The root is rotated from this host only. */
function refusalOf(order: string, { caller }: PageRequest) {
  if (!Object.hasOwn(orders, order))
    return text(
      `order must be one of ${Object.keys(orders).join(', ')}, got ${JSON.stringify(order.slice(0, 40))}`,
      400,
    );
  return caller === 'operator'
    ? undefined
    : text('forbidden: the root can be rotated only from this host, with the token of the debugger', 403);
}

/** Where nobody would be cut off, a rotation goes on by itself. */
function cutOff({ missing }: AuthorityPageSource, { query }: PageRequest) {
  const awaited = missing();
  if (awaited === undefined) return text('rejected: the rotation waits for no workload', 409);
  if (query.get('force') === 'true') return undefined;
  const { count, workloads } = awaited;
  const more = count > workloads.length ? ' and others' : '';
  return text(
    `rejected: ${count} workloads would lose their connections: ${workloads.join(', ')}${more}; add &force=true to continue without them`,
    409,
  );
}
