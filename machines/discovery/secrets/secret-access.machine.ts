import { enqueueActions, sendTo, setup } from 'xstate';
import { callbackEffect } from '../../effect.ts';
import { peer } from '../peers.ts';
import type { AccessReviewed, AccessUnavailable, AccountsListed, PushRequest } from '../protocol.ts';
import { secretAccessTimeline } from '../timeline.ts';
import { accessReviewMachine } from './access-review.machine.ts';

interface ReviewedAccount {
  account: string;
  name: `access-review-${number}`;
}

interface SecretAccessContext {
  accounts: ReviewedAccount[];
  started: number;
}

/**
 * Decides by SubjectAccessReviews which service accounts may read the Secrets of their namespaces. Only accounts of connected proxies that use
 * Secrets are reviewed.
 */
export const secretAccessMachine = setup({
  types: {
    context: {} as SecretAccessContext,
    events: {} as AccountsListed | AccessReviewed | AccessUnavailable,
    children: {} as { accounts: 'watchAccounts' } & Record<`access-review-${number}`, 'accessReview'>,
  },
  actors: {
    watchAccounts: callbackEffect<{ type: never }, undefined>('watchAccounts'),
    accessReview: accessReviewMachine,
  },
  actions: {
    reconcileAccounts: enqueueActions(({ context, enqueue }, { accounts: listedAccounts }: { accounts: string[] }) => {
      let { started } = context;
      const accountByName = new Map(context.accounts.map((one) => [one.account, one]));
      const accounts = listedAccounts.map((account): ReviewedAccount => {
        const existingAccount = accountByName.get(account);
        if (existingAccount !== undefined) return existingAccount;
        const name = `access-review-${++started}` as const;
        enqueue.spawnChild('accessReview', { id: name, input: { account } });
        return { account, name };
      });
      const names = new Set(accounts.map(({ name }) => name));
      for (const { name } of context.accounts) if (!names.has(name)) enqueue.stopChild(name);
      enqueue.assign({ accounts, started });
    }),
    applyReview: (_, _params: { account: string; allowed: boolean }) => {},
    requestPush: sendTo(peer('push'), (): PushRequest => {
      return { type: 'push.request', configs: [], forced: true, reasons: { secret: 1 } };
    }),
  },
}).createMachine({
  id: 'secret-access',
  description: 'Which service accounts may read Secrets.',
  meta: { timeline: secretAccessTimeline },
  context: { accounts: [], started: 0 },
  invoke: { id: 'accounts', src: 'watchAccounts' },
  initial: 'watching',
  states: {
    watching: {
      description: 'Each account has an actor.',
      meta: { waitsFor: 'a change of the accounts that use Secrets, or of a review: normal operation' },
      on: {
        'accounts.listed': {
          actions: { type: 'reconcileAccounts', params: ({ event }) => ({ accounts: event.accounts }) },
        },
        'access.reviewed': {
          actions: [
            { type: 'applyReview', params: ({ event: { account, allowed } }) => ({ account, allowed }) },
            'requestPush',
          ],
        },
        'access.unavailable': {
          description: 'Recorded only: the last result applies; without one, no Secrets are served.',
        },
      },
    },
  },
});
