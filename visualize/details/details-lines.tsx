import type { JSX } from 'preact';
import { nearbyLogs } from '../model/moment.ts';
import { jumpTo } from '../model/place.ts';
import type { PageRecording } from '../model/recording/recording.ts';
import { durationText } from '../model/recording/words.ts';
import { Column } from './column.tsx';

const maxLines = 40;

/** Log lines of Envoy and other processes within two seconds of the record. */
export function LogLines({
  open: openRecording,
  t,
}: {
  readonly open: PageRecording;
  readonly t: number;
}): JSX.Element {
  const { lines, totalCount: totalLines } = nearbyLogs(openRecording, t, maxLines);
  return (
    <Column label="Log lines" part="log">
      <h3 class="column-head">
        Log lines <span class="muted">±2 s, nearest first</span>
      </h3>
      {lines.length === 0 && <p class="muted">No log lines within 2 s.</p>}
      <ol class="lines">
        {lines.map(({ index, record, awayMs }) => (
          <li key={index} data-level={record.level}>
            <button type="button" class="record-link" data-record={record.seq} onClick={() => jumpTo(index)}>
              <span class="away">
                {awayMs === 0 ? 'now' : `${awayMs < 0 ? '−' : '+'}${durationText(Math.abs(awayMs))}`}
              </span>
              <span class="log-actor" title={record.actor}>
                {record.actor.split('/')[0]}
              </span>
              <span class="log-text">{record.text}</span>
            </button>
          </li>
        ))}
      </ol>
      {totalLines > maxLines && <p class="muted">… and {totalLines - maxLines} more</p>}
    </Column>
  );
}
