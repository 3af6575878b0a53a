import { fromPromise } from 'xstate';
import { secretMachine } from '../../../machines/agent/secrets/secret.machine.ts';
import type { ActorImplementations } from '../../runtime/actors/effects-of.ts';
import type { Clocks } from '../../runtime/clock-steps.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { certificateFile } from '../files/certificate-files.ts';
import { directoryWatchWithEffects } from '../files/directory-watch.effects.ts';
import { awaitClockStep } from './clock-step.ts';

export interface SecretEffects extends ActorImplementations<typeof secretMachine, 'obtain'> {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Logger;
  readonly clocks?: Clocks;
}

export function secretWithEffects({ obtain, now, log, clocks }: SecretEffects) {
  return secretMachine.provide({
    actors: {
      obtain,
      readClock: fromPromise<{ atMs: number }, undefined>(async () => ({ atMs: now() })),
      awaitClockStep: awaitClockStep(log, clocks),
      directory: directoryWatchWithEffects(isSecretFile),
    },
  });
}

function isSecretFile(name: string): boolean {
  return certificateFile.test(name) || name.endsWith('.crl');
}
