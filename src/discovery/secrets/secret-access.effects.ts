import { fromCallback } from 'xstate';
import type { AccountsListed } from '../../../machines/discovery/protocol.ts';
import { secretAccessMachine } from '../../../machines/discovery/secrets/secret-access.machine.ts';
import { accessReviewWithEffects } from './access-review.effects.ts';
import type { SecretAccess } from './secret-access.ts';

export function secretAccessWithEffects(access: SecretAccess) {
  return secretAccessMachine.provide({
    actors: {
      watchAccounts: fromCallback<{ type: never }, undefined>(({ sendBack }) =>
        access.watch((accounts) => sendBack({ type: 'accounts.listed', accounts } satisfies AccountsListed)),
      ),
      accessReview: accessReviewWithEffects(access),
    },
    actions: { applyReview: (_, { account, allowed }) => access.setAllowed(account, allowed) },
  });
}
