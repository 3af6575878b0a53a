import { fromPromise } from 'xstate';
import {
  type AccessResult,
  type AccessReviewInput,
  accessReviewMachine,
} from '../../../machines/discovery/secrets/access-review.machine.ts';
import type { SecretAccess } from './secret-access.ts';

export function accessReviewWithEffects(access: SecretAccess) {
  return accessReviewMachine.provide({
    actors: {
      reviewAccess: fromPromise<AccessResult, AccessReviewInput>(({ input, signal }) =>
        access.review(input.account, signal),
      ),
    },
  });
}
