import { signal } from '@preact/signals';
import type { Source } from '../../src/debugger/page-data.ts';

export type TraceConnection =
  | { readonly kind: 'opening'; readonly records: number }
  /** `cutOffLines` lists the numbers of incomplete lines. */
  | { readonly kind: 'complete'; readonly cutOffLines: readonly number[] }
  | { readonly kind: 'live' }
  /** `retryAt` is a time of `performance.now()`. */
  | { readonly kind: 'lost'; readonly reason: string; readonly retryAt: number }
  /** No more records follow. */
  | { readonly kind: 'ended' }
  /** No trace could be opened, or the rest of the shown trace could not be read. */
  | { readonly kind: 'failed'; readonly reason: string };

export const sources = signal<readonly Source[]>([]);

export const source = signal(0);

export const connection = signal<TraceConnection>({ kind: 'opening', records: 0 });

export const connectionNotice = signal<string | undefined>(undefined);
