import type { RecordedRun } from '../trace/record-list.ts';
import { lifeSpans } from './life-spans.ts';
import { pushSpans } from './push-spans.ts';
import { restartSpans } from './restart-spans.ts';
import type { OtlpSpan } from './span.ts';

export function spansOf(run: RecordedRun): OtlpSpan[] {
  if (run.header.foreign === true) return lifeSpans(run);
  return [...restartSpans(run), ...pushSpans(run)];
}
