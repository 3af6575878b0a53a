/** The page of the certificate authority, and the orders that an operator gives it (docs/identity.md). */
import type { OperatorOrder } from '../../../../machines/discovery/protocol.ts';
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
      'who signs, which roots are trusted, whom a rotation waits for; POST ?order=rotate begins one, taint has everybody renew at once, revert takes its last step back, proceed&force=true leaves behind who is waited for',
    changes: (query) => query.has('order'),
    answer: ({ authority }, request) => {
      if (authority === undefined) return text('nothing is signed here: see docs/identity.md', 404);
      const order = request.query.get('order');
      if (order === null) return ok(authority.describe());
      if (authority.orderedBy !== undefined) return text(`refused: ${authority.orderedBy}`, 409);
      const refusal = refusalOf(order, request) ?? (order === 'proceed' ? cutOff(authority, request) : undefined);
      if (refusal !== undefined) return refusal;
      authority.rotate(orders[order]!);
      return text('ordered: this page tells how far it is', 202);
    },
  },
];

/** The root is rotated from this host only. */
function refusalOf(order: string, { caller }: PageRequest) {
  if (!Object.hasOwn(orders, order))
    return text(`no order ${JSON.stringify(order.slice(0, 40))}: ${Object.keys(orders).join(', ')}`, 400);
  return caller === 'operator' ? undefined : text('refused: the root is rotated from this host only', 403);
}

/** Where nobody would be cut off, a rotation goes on by itself. */
function cutOff({ missing }: AuthorityPageSource, { query }: PageRequest) {
  const awaited = missing();
  if (awaited === undefined) return text('refused: nobody is waited for', 409);
  if (query.get('force') === 'true') return undefined;
  const { count, workloads } = awaited;
  const more = count > workloads.length ? ' and others' : '';
  return text(
    `refused: ${count} would be cut off: ${workloads.join(', ')}${more}; &force=true leaves them behind`,
    409,
  );
}
