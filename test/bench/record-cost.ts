/** Cost of one record in this process, without a network. */
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceLine, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { TraceRing } from '../../src/runtime/trace/trace-ring.ts';
import { medianOf } from './statistics.ts';

const rounds = 31;
const ringCapacity = 20_000;

/**
 * CPU time of one record: redacted and stored in the ring, as in both programs.
 *
 * @param lines sample records, which are recorded repeatedly
 * @returns microseconds
 */
export function recordCostUs(lines: readonly TraceLine[]): number {
  const records = lines.filter((line): line is TraceRecord => line.kind !== 'header');
  const recorder = createRecorder({ program: 'bench', sinks: [new TraceRing(ringCapacity)] });
  const repetitions = Math.ceil(ringCapacity / records.length);
  const costs = Array.from({ length: rounds }, () =>
    cpuUs(() => {
      for (let i = 0; i < repetitions; i++) for (const { seq: _, t: __, ...body } of records) recorder.record(body);
    }),
  );
  return medianOf(costs) / (repetitions * records.length);
}

function cpuUs(task: () => void): number {
  const startUsage = process.cpuUsage();
  task();
  const { user, system } = process.cpuUsage(startUsage);
  return user + system;
}
