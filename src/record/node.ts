import { traceFile } from '../runtime/trace/trace-file.ts';
import { type Recording, type RecordOptions, recordTo } from './record.ts';

export interface RecordToFileOptions extends RecordOptions {
  /** The file is then renamed to `<path>.1` and a new one is started (default 64 MiB). */
  readonly maxBytes?: number;
}

/**
 * Records into a file with mode 0600. The last records are also written if the program exits without {@link Recording.close}.
 *
 * @throws Error if a trace cannot be written there
 *
 * @example
 * ```ts
 * const { inspect } = recordToFile('lock.trace', { program: 'door lock', machines: [lockMachine] });
 * createActor(lockMachine, { id: 'lock', inspect }).start();
 * ```
 */
export function recordToFile(path: string, options: RecordToFileOptions): Recording {
  const { maxBytes, ...recordOptions } = options;
  const file = traceFile(path, maxBytes === undefined ? {} : { maxBytes });
  const flush = (): void => file.flush();
  process.once('exit', flush);
  const recording = recordTo([file], recordOptions);
  return {
    ...recording,
    close: async () => {
      process.off('exit', flush);
      await recording.close();
    },
  };
}
