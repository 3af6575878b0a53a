import { fromCallback } from 'xstate';
import { messageOf } from '../../../runtime/errors.ts';
import type { StopWatching, WatchHandlers } from '../../../runtime/files/file-watch.ts';
import type { Logger } from '../../../runtime/output/log.ts';

type ChangeEventType = 'files.changed' | 'source.changed';

/** If a watch fails, the failure is logged and the last content still applies. */
export function watchEffect<Input>(
  startWatch: (input: Input, handlers: WatchHandlers) => StopWatching,
  type: ChangeEventType,
  log: Logger,
) {
  return fromCallback<{ type: never }, Input>(({ input, sendBack }) =>
    startWatch(input, {
      changed: (path, isBurst = false) =>
        sendBack(
          type === 'source.changed'
            ? { type, place: path, ...(isBurst && { isBurst: true as const }) }
            : { type, path },
        ),
      failed: (error) => log.error('files.watchFailed', { reason: messageOf(error) }),
    }),
  );
}
