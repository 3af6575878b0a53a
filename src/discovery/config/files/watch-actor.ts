/** What a watch of files is to a statechart. */
import { fromCallback } from 'xstate';
import { messageOf } from '../../../runtime/errors.ts';
import type { StopWatching, WatchHandlers } from '../../../runtime/files/file-watch.ts';
import type { Logger } from '../../../runtime/output/log.ts';

/** Types of the events that tell where something happened. */
type Moved = 'files.changed' | 'source.moved';

/** Passes on what a watch sees. That it cannot watch is told in the log: what was read stays good. */
export function watchEffect<Input>(
  begin: (input: Input, handlers: WatchHandlers) => StopWatching,
  type: Moved,
  log: Logger,
) {
  return fromCallback<{ type: never }, Input>(({ input, sendBack }) =>
    begin(input, {
      changed: (path, isBurst = false) =>
        sendBack(
          type === 'source.moved' ? { type, place: path, ...(isBurst && { isBurst: true as const }) } : { type, path },
        ),
      failed: (error) => log.error('files.watchFailed', { reason: messageOf(error) }),
    }),
  );
}
