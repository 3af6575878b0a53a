import type { JSX } from 'preact';
import { marks } from '../model/marks.ts';
import { jumpTo, recording, size } from '../model/place.ts';
import { recordText } from '../model/recording/words.ts';
import { width, xOf } from './timeline-view.ts';

export function Flags(): JSX.Element {
  const openRecording = recording.value;
  size.value;
  const markIndexes = marks.value.flatMap((seq) => openRecording?.indexOf(seq) ?? []);
  return (
    <>
      {markIndexes.map((index) => {
        const record = openRecording!.recordAt(index)!;
        const x = xOf(record.t);
        const markText = `Marked: record ${record.seq}, ${recordText(record)}`;
        return (
          <button
            key={record.seq}
            type="button"
            class="flag"
            data-flag={record.seq}
            aria-label={markText}
            title={`${markText}. Press M to remove the mark`}
            hidden={x < 0 || x > width.value}
            style={{ transform: `translateX(${x}px)` }}
            onPointerDown={(event) => event.stopPropagation()}
            onClick={() => jumpTo(index)}
          />
        );
      })}
    </>
  );
}
