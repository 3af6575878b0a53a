/** Where the open trace comes from, and how that goes. */
import { signal } from '@preact/signals';
import type { Source } from '../../src/debugger/page-data.ts';

export type Connection =
  /** Its records are being read: so many are. */
  | { readonly kind: 'opening'; readonly records: number }
  /** All of a file is there. `cutOff`: numbers of lines that were only half written. */
  | { readonly kind: 'complete'; readonly cutOff: readonly number[] }
  /** Records come as they happen. */
  | { readonly kind: 'live' }
  /** It broke off; the next try comes at `retryAt` (`performance.now()`). */
  | { readonly kind: 'lost'; readonly reason: string; readonly retryAt: number }
  /** The program has ended: no more will come. */
  | { readonly kind: 'ended' }
  /** There is nothing to show, or nothing behind what is shown. */
  | { readonly kind: 'failed'; readonly reason: string };

export const sources = signal<readonly Source[]>([]);

/** Number of the source that is open. */
export const source = signal(0);

export const connection = signal<Connection>({ kind: 'opening', records: 0 });

/** Something that a person should know once, and may send away. */
export const notice = signal<string | undefined>(undefined);
