import { fromPromise } from 'xstate';
import {
  type AuthorityReading,
  authorityMachine,
  type Candidate,
  type Journal,
} from '../../../machines/discovery/ca/authority.machine.ts';
import type { AuthorityId } from '../../../machines/discovery/ca/authority-protocol.ts';
import { clockStepText, watchClockSteps } from '../../runtime/clock-steps.ts';
import type { StopWatching, WatchHandlers } from '../../runtime/files/file-watch.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { watchDirectory } from '../config/files/directory-watch.ts';
import { watchEffect } from '../config/files/watch-actor.ts';
import type { Authority } from './authority.ts';
import type { LedgerKeeper } from './ledger/ledger-keeper.ts';

export interface AuthorityEffects {
  readonly authority: Authority;
  readonly ledger: LedgerKeeper;
  readonly directory: string;
  readonly watchRevoked: (handlers: WatchHandlers) => StopWatching;
  readonly logger: Logger;
}

export function authorityWithEffects({ authority, ledger, directory, watchRevoked, logger }: AuthorityEffects) {
  return authorityMachine.provide({
    actors: {
      workloadLedger: ledger.effect(),
      watchAuthority: watchEffect<undefined>(
        (_, handlers) => {
          const clock = watchClockSteps((stepMs) => {
            logger.warn('clock.stepped', { step: clockStepText(stepMs) });
            handlers.changed('the clock');
          });
          const stops = [watchDirectory(directory, handlers), watchRevoked(handlers), clock];
          return () => {
            for (const stop of stops) stop();
          };
        },
        'files.changed',
        logger,
      ),
      loadAuthority: fromPromise<AuthorityReading, undefined>(async () => authority.load()),
      prepareRoot: fromPromise<{ id: AuthorityId }, undefined>(() => authority.prepareRoot()),
      readCandidate: fromPromise<Candidate, { signer: AuthorityId }>(async ({ input }) =>
        authority.readCandidate(input.signer),
      ),
      isRootDue: fromPromise<boolean, { signer: AuthorityId }>(async ({ input }) => authority.isRootDue(input.signer)),
      writeJournal: fromPromise<void, Journal>(async ({ input }) => authority.writeJournal(input)),
    },
    actions: {
      publishRoots: (_, { roots, tainted }) => authority.publishRoots(roots, tainted),
      signWith: (_, { signer }) => authority.signWith(signer),
    },
  });
}
