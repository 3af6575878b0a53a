import { fromPromise } from 'xstate';
import {
  type CredentialDates,
  credentialDatesMachine,
} from '../../../machines/discovery/secrets/credential-dates.machine.ts';
import { configKeyText } from '../../model/config/config.ts';
import type { CredentialIndex } from '../../model/push-context/credential-index.ts';

/** @param credentials `undefined` before the first push context */
export function credentialDatesWithEffects(credentials: () => CredentialIndex | undefined) {
  return credentialDatesMachine.provide({
    actors: {
      compareDates: fromPromise<CredentialDates, undefined>(async () => compareDates(credentials(), new Date())),
    },
  });
}

export function compareDates(credentials: CredentialIndex | undefined, now: Date): CredentialDates {
  const dates: CredentialDates = { due: [], nextInMs: null };
  for (const { config, lists } of credentials?.withRevocationLists() ?? []) {
    if (lists.recheckAt === undefined) continue;
    const recheckInMs = lists.recheckAt.getTime() - now.getTime();
    if (recheckInMs <= 0) dates.due.push(configKeyText(config));
    else dates.nextInMs = Math.min(dates.nextInMs ?? recheckInMs, recheckInMs);
  }
  return dates;
}
