import { basename } from 'node:path';
import { binaryWatcherMachine } from '../../../machines/agent/files/binary-watcher.machine.ts';
import { type BinaryCheckEnvironment, checkBinary } from './check-binary.ts';
import { directoryWatchWithEffects } from './directory-watch.effects.ts';

export function binaryWatcherWithEffects(binary: string, checkEnvironment: BinaryCheckEnvironment) {
  return binaryWatcherMachine.provide({
    actors: {
      directory: directoryWatchWithEffects((name) => name === basename(binary)),
      checkBinary: checkBinary(checkEnvironment),
    },
  });
}
