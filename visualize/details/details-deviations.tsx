import type { JSX } from 'preact';
import { formatDeviation } from '../../src/debugger/check/check-report-text.ts';
import type { PageRecording } from '../model/recording/recording.ts';
import { deviationText } from '../model/recording/words.ts';
import { Icon } from '../parts/icon.tsx';

/** The texts are those of `chartpilot check`. */
export function RecordDeviations({
  open: openRecording,
  index,
}: {
  readonly open: PageRecording;
  readonly index: number;
}): JSX.Element {
  return (
    <>
      {openRecording.deviationsAt(index).map((deviation, i) => (
        <div class="departure" role="note" key={i}>
          <p>
            <Icon name="departure" />
            <strong>Deviates from a sequence diagram.</strong> {deviationText(deviation)}
          </p>
          <details>
            <summary>Expected and actual</summary>
            <pre>{formatDeviation(deviation, openRecording.diagrams)}</pre>
          </details>
        </div>
      ))}
    </>
  );
}
