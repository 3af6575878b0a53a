/** The page of the certificate authority, and the orders that an operator gives it (docs/identity.md). */
import { type DebugPage, ok, type PageRequest, text } from './debug-page.ts';

const orders = { rotate: 'rotation.order', revert: 'rotation.revert' } as const;

export const authorityPages: readonly DebugPage[] = [
  {
    path: 'authorityz',
    description:
      'who signs, which roots are trusted, whom a rotation waits for; POST ?order=rotate begins one, POST ?order=revert takes its last step back',
    answer: ({ authority }, request) => {
      if (authority === undefined) return text('nothing is signed here: see docs/identity.md', 404);
      const order = request.query.get('order');
      if (order === null) return ok(authority.describe());
      const refusal = refusalOf(order, request);
      if (refusal !== undefined) return refusal;
      authority.rotate(orders[order as keyof typeof orders]);
      return text('ordered: this page tells how far it is', 202);
    },
  },
];

/** A page that is only looked at changes nothing, and nobody from elsewhere rotates a root. */
function refusalOf(order: string, { method, isLocal }: PageRequest) {
  if (!Object.hasOwn(orders, order))
    return text(`no order ${JSON.stringify(order.slice(0, 40))}: rotate or revert`, 400);
  if (method !== 'POST') return text('an order needs the method POST', 405);
  return isLocal ? undefined : text('refused: the root is rotated from this host only', 403);
}
