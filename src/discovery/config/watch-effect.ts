/** What a watch of files is to a statechart. */
import { fromCallback } from 'xstate';
import { messageOf } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/log.ts';
import type { StopWatching, WatchHandlers } from './file-watch.ts';

/** Passes on what a watch sees. That it cannot watch is told in the log: what was read stays good. */
export function watchEffect<Input>(begin: (input: Input, handlers: WatchHandlers) => StopWatching, log: Logger) {
  return fromCallback<{ type: never }, Input>(({ input, sendBack }) =>
    begin(input, {
      changed: (path) => sendBack({ type: 'files.changed', path }),
      failed: (error) => log.error('files cannot be watched: changes may go unnoticed', { reason: messageOf(error) }),
    }),
  );
}
