import { dirname } from 'node:path';
import { fromPromise } from 'xstate';
import {
  type BootstrapWriteOutcome,
  grpcBootstrapMachine,
} from '../../../machines/agent/bootstrap/grpc-bootstrap.machine.ts';
import { messageOf } from '../../runtime/errors.ts';
import { ensureDirectory } from '../../runtime/files/make-folder.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { writeIfDifferent } from '../files/write-if-different.ts';
import type { ProxyOptions } from '../options/options.ts';
import { grpcBootstrap, grpcBootstrapPath } from './grpc-bootstrap.ts';
import { bootstrapText } from './prepare-epoch.ts';

export interface GrpcBootstrapEnvironment {
  readonly options: ProxyOptions;
  readonly hasCredentialServer: boolean;
  readonly log: Logger;
}

/** Programs of other users of the pod read the file, which contains no secrets. */
const fileMode = 0o644;
const folderMode = 0o700;

export function grpcBootstrapWithEffects({ options, hasCredentialServer, log }: GrpcBootstrapEnvironment) {
  return grpcBootstrapMachine.provide({
    actors: {
      writeGrpcBootstrap: fromPromise<BootstrapWriteOutcome, undefined>(async () => {
        const file = grpcBootstrapPath(options);
        const { bootstrap, warnings } = grpcBootstrap(options, { hasCredentialServer });
        for (const warning of warnings) log.write(warning);
        try {
          ensureDirectory(dirname(file), folderMode);
          await writeIfDifferent(file, bootstrapText(bootstrap), fileMode);
        } catch (error) {
          return { reason: `${file}: ${messageOf(error)}` };
        }
        return { file };
      }),
    },
  });
}
