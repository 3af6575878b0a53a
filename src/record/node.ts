/** `chartpilot/record/node`: as `chartpilot/record`, into a file. */
import { traceFile } from '../runtime/trace/trace-file.ts';
import { type Recording, type RecordOptions, recordTo } from './record.ts';

export interface RecordToFileOptions extends RecordOptions {
  /** The file is renamed to `<path>.1` and begun anew when it has grown past this. 64 MiB unless given. */
  readonly maxBytes?: number;
}

/**
 * Begins to record into a file that only its owner may read. A disk that is full or a file that is moved away costs records, and
 * never the program; what was recorded last is written also when the program ends without {@link Recording.close}.
 *
 * @throws Error when a trace can never be written there
 *
 * @example
 * const { inspect } = recordToFile('lock.trace', { program: 'door lock', machines: [lockMachine] });
 * createActor(lockMachine, { id: 'lock', inspect }).start();
 */
export function recordToFile(path: string, options: RecordToFileOptions): Recording {
  const { maxBytes, ...rest } = options;
  const file = traceFile(path, maxBytes === undefined ? {} : { maxBytes });
  const flush = (): void => file.flush();
  process.once('exit', flush);
  const recording = recordTo([file], rest);
  return {
    ...recording,
    close: async () => {
      process.off('exit', flush);
      await recording.close();
    },
  };
}
