import type { JSX } from 'preact';
import { formatDeviation } from '../../src/debugger/check/check-report-text.ts';
import type { Recording } from '../model/recording/recording.ts';
import { departureInOneLine } from '../model/recording/words.ts';
import { Icon } from '../parts/icon.tsx';

/** Expected and actual messages where this record deviates from the sequence diagrams, as `chartpilot check` prints them. */
export function Departures({ open, index }: { readonly open: Recording; readonly index: number }): JSX.Element {
  return (
    <>
      {open.departureAt(index).map((departure, i) => (
        <div class="departure" role="note" key={i}>
          <p>
            <Icon name="departure" />
            <strong>Deviates from a sequence diagram.</strong> {departureInOneLine(departure)}
          </p>
          <details>
            <summary>Expected and actual</summary>
            <pre>{formatDeviation(departure, open.diagrams)}</pre>
          </details>
        </div>
      ))}
    </>
  );
}
