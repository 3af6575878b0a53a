/** Has the charts of access to Secrets use what asks the API server. */
import { fromCallback, fromPromise } from 'xstate';
import {
  type AccessAnswer,
  type AccessReviewInput,
  accessReviewMachine,
} from '../../../machines/discovery/kubernetes/access-review.machine.ts';
import { secretAccessMachine } from '../../../machines/discovery/kubernetes/secret-access.machine.ts';
import type { AccountsWanted } from '../../../machines/discovery/protocol.ts';
import type { SecretAccess } from './secret-access.ts';

export function secretAccessWithEffects(access: SecretAccess) {
  return secretAccessMachine.provide({
    actors: {
      watchAccounts: fromCallback<{ type: never }, undefined>(({ sendBack }) =>
        access.watch((accounts) => sendBack({ type: 'accounts.wanted', accounts } satisfies AccountsWanted)),
      ),
      accessReview: accessReviewMachine.provide({
        actors: {
          reviewAccess: fromPromise<AccessAnswer, AccessReviewInput>(({ input, signal }) =>
            access.review(input.account, signal),
          ),
        },
      }),
    },
    actions: { adopt: (_, { account, allowed }) => access.adopt(account, allowed) },
  });
}
