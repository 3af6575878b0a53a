import { certWatcherMachine } from '../../../machines/agent/files/cert-watcher.machine.ts';
import type { FileTurns } from '../../runtime/files/file-turns.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { ValidationEnvironment } from '../envoy/envoy-validation.ts';
import { readCertificates, waitForFiles } from './certificate-files.ts';
import { certificateValidator } from './certificate-validation.ts';
import { directoryWatchWithEffects } from './directory-watch.effects.ts';

export function certWatcherWithEffects(
  validationEnvironment: ValidationEnvironment,
  fileTurns: FileTurns,
  log: Logger,
) {
  return certWatcherMachine.provide({
    actors: {
      waitForFiles: waitForFiles(fileTurns),
      directory: directoryWatchWithEffects(),
      digestFiles: readCertificates(certificateValidator(validationEnvironment), log.scope('cert-watcher'), fileTurns),
    },
  });
}
