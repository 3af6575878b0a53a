import { formatReplayTest, type ReplayTest } from '../../src/debugger/replay/format-test.ts';
import type { PageRecording } from '../model/recording/recording.ts';
import { recordText } from '../model/recording/words.ts';
import type { ExportedRange } from './exported-range.ts';

/** The test replays the trace from its beginning. */
export function rangeTest(recording: PageRecording, { last }: ExportedRange): ReplayTest {
  const { header } = recording;
  const lastRecord = recording.recordAt(last)!;
  return formatReplayTest({
    header,
    records: recording.recordsIn(0, last),
    upTo: lastRecord.seq,
    name: `${header.program} does what was recorded, up to record ${lastRecord.seq} (${recordText(lastRecord)})`,
  });
}

export function testErrorText(recording: PageRecording): string | undefined {
  if (recording.header.actors === undefined && recording.seqAt(0) === 1) return undefined;
  return 'The trace does not start with the program, so it cannot be replayed.';
}
