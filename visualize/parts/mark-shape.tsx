import type { JSX } from 'preact';
import type { MarkKind } from '../model/recording/lanes.ts';

/** Shapes differ for users who cannot distinguish the colours. */
export const markShapes: Readonly<Record<MarkKind, string>> = {
  departure: 'M0-7 6.5 5h-13z',
  failure: 'M-5-5 5 5M5-5-5 5',
  rejected: 'M-5 0h10',
  retry: 'M3.6-3.6A5 5 0 1 0 5 0M5-6v3.6H1.4',
  signal: 'M1.5-6-4 1.2h3.2L-1.5 6 4-1.2H.8z',
  restart: 'M0-6 5 0 0 6-5 0z',
  change: 'M-3.6-3.6h7.2v7.2h-7.2z',
  push: 'M-4-5 5 0-4 5z',
  request: 'M2.5 0A2.5 2.5 0 1 1-2.5 0 2.5 2.5 0 0 1 2.5 0z',
};

/** Worst first. */
export const markNames: Readonly<Record<MarkKind, string>> = {
  departure: 'deviation from a sequence diagram',
  failure: 'failure',
  rejected: 'rejected',
  retry: 'retry',
  signal: 'signal',
  restart: 'restart',
  change: 'change',
  push: 'push',
  request: 'push requested',
};

export function MarkSign({ kind }: { readonly kind: MarkKind }): JSX.Element {
  return (
    <svg class="mark-sign" width="16" height="16" viewBox="-8 -8 16 16" aria-hidden="true">
      <g class="mark" data-kind={kind}>
        <path class="shape" d={markShapes[kind]} />
      </g>
    </svg>
  );
}
