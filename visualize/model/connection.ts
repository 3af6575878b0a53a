/** State of the source of the open trace. */
import { signal } from '@preact/signals';
import type { Source } from '../../src/debugger/page-data.ts';

export type Connection =
  /** Number of records read so far. */
  | { readonly kind: 'opening'; readonly records: number }
  /** The whole file was read. `cutOff`: numbers of incomplete lines. */
  | { readonly kind: 'complete'; readonly cutOff: readonly number[] }
  /** Records arrive as they are written. */
  | { readonly kind: 'live' }
  /** The connection broke; the next attempt is at `retryAt` (`performance.now()`). */
  | { readonly kind: 'lost'; readonly reason: string; readonly retryAt: number }
  /** The program has ended, so no more records follow. */
  | { readonly kind: 'ended' }
  /** There is no trace, or no more of the shown one. */
  | { readonly kind: 'failed'; readonly reason: string };

export const sources = signal<readonly Source[]>([]);

/** Number of the source that is open. */
export const source = signal(0);

export const connection = signal<Connection>({ kind: 'opening', records: 0 });

/** A message for the user, which can be dismissed. */
export const notice = signal<string | undefined>(undefined);
