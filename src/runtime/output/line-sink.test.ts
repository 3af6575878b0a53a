import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Fault, FaultyOutlets } from '../../../test/fixtures/faulty-outlets.ts';
import { type LineLoss, LineSink } from './line-sink.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A sink that reports its losses at the position of the lost lines, as a log does. */
function sinkTo(outlets: FaultyOutlets, maxBytes = 100) {
  const sink = new LineSink({ open: outlets.open, maxBytes });
  const losses: LineLoss[] = [];
  const failures: string[] = [];
  sink.listen({
    failed: (error) => failures.push((error as Error).message),
    recovered: (loss) => {
      if (loss === undefined) return;
      losses.push(loss);
      sink.write(`lost ${loss.lines}\n`);
    },
  });
  return { sink, losses, failures };
}

const fullDisk: Fault = { code: 'ENOSPC' };
const stalledOutlet: Fault = { maxBytes: 0 };
const repeatFault = (fault: Fault): Fault[] => Array.from({ length: 10_000 }, () => fault);

test('LineSink writes a line synchronously', () => {
  const outlets = new FaultyOutlets();
  const { sink } = sinkTo(outlets);
  sink.write('one\n');
  sink.write('two\n');
  expect(outlets.files).toEqual(['one\ntwo\n']);
});

test('LineSink queues lines for a blocked reader up to a limit, counts further lines, and reports their number when the reader continues', () => {
  const outlets = new FaultyOutlets();
  const { sink, losses } = sinkTo(outlets);
  outlets.writeFaults = repeatFault(stalledOutlet);
  const initialTime = new Date();
  for (let i = 0; i < 50; i++) {
    sink.write(`line ${i}\n`);
    vi.advanceTimersByTime(10);
    expect(sink.waitingBytes).toBeLessThanOrEqual(100);
  }
  outlets.writeFaults = [];
  vi.advanceTimersByTime(60);
  const [file] = outlets.files;
  const keptLineCount = file!.split('\n').filter((line) => line.startsWith('line')).length;
  expect(file).toMatch(/^line 0\n(line \d+\n)+lost \d+\n$/);
  expect(losses).toMatchObject([{ lines: 50 - keptLineCount, why: 'its reader did not keep up' }]);
  expect(losses[0]!.from.getTime()).toBeGreaterThan(initialTime.getTime());
  expect(losses[0]!.to.getTime()).toBeGreaterThan(losses[0]!.from.getTime());
  expect(sink.lost).toBe(50 - keptLineCount);
  sink.write('after\n');
  expect(outlets.files[0]!.endsWith('after\n')).toBe(true);
});

test('LineSink counts queued lines as waiting, so that a full disk is visible long before lines are lost', () => {
  const outlets = new FaultyOutlets();
  const { sink } = sinkTo(outlets);
  sink.write('out\n');
  expect(sink.lines).toEqual({ lost: 0, waiting: 0 });
  outlets.writeFaults = repeatFault(fullDisk);
  sink.write('one\n');
  sink.write('two\nthree\n');
  expect(sink.lines).toEqual({ lost: 0, waiting: 3 });
  outlets.writeFaults = [];
  vi.advanceTimersByTime(1_000);
  expect(sink.lines).toEqual({ lost: 0, waiting: 0 });
});

test('LineSink loses no lines if the reader reads within one event loop iteration', () => {
  const outlets = new FaultyOutlets();
  const { sink } = sinkTo(outlets);
  outlets.writeFaults = [stalledOutlet];
  sink.write('0\n');
  for (let i = 1; i < 500; i++) {
    vi.setSystemTime(Date.now() + 1);
    vi.spyOn(performance, 'now').mockReturnValue(i);
    sink.write(`${i}\n`);
  }
  vi.restoreAllMocks();
  expect(sink.lost).toBe(0);
  expect(outlets.files[0]!.split('\n')).toHaveLength(501);
});

test('LineSink reopens a failed output with growing delays, and continues where it was interrupted', () => {
  const outlets = new FaultyOutlets();
  const { sink, losses, failures } = sinkTo(outlets);
  outlets.writeFaults = [{ maxBytes: 3 }, ...repeatFault(fullDisk)];
  sink.write('a line\n');
  vi.advanceTimersByTime(600_000);
  expect(outlets.opened).toBeGreaterThan(30);
  expect(outlets.opened).toBeLessThan(75);
  expect(outlets.closed).toBe(outlets.opened);
  expect(failures).toEqual(['ENOSPC: on order']);
  outlets.writeFaults = [];
  vi.advanceTimersByTime(10_000);
  expect(outlets.files).toEqual(['a line\n']);
  expect(losses).toEqual([]);
});

test('LineSink recreates a file that was moved, and begins it with the complete interrupted line', () => {
  const outlets = new FaultyOutlets();
  const { sink } = sinkTo(outlets);
  sink.write('one\n');
  outlets.moveAway();
  sink.write('two\n');
  outlets.writeFaults = [{ maxBytes: 2 }, fullDisk];
  sink.write('three\n');
  outlets.moveAway();
  vi.advanceTimersByTime(1_000);
  expect(outlets.files).toEqual(['one\n', 'two\nth', 'three\n']);
});

test('LineSink writes printed text completely to a slow reader, and end() waits for that without a limit', async () => {
  const outlets = new FaultyOutlets();
  const { sink } = sinkTo(outlets);
  outlets.writeFaults = repeatFault({ maxBytes: 1 }).flatMap((one) => [one, stalledOutlet]);
  const text = 'x'.repeat(2_000);
  sink.print(`${text}\n`);
  const onEnd = vi.fn();
  const end = sink.end(0).then(onEnd);
  await vi.advanceTimersByTimeAsync(100);
  expect(onEnd).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(200_000);
  await end;
  expect(outlets.files).toEqual([`${text}\n`]);
});

test('LineSink waits at the end of the program for a slow log reader up to a limit, but not for a full disk', async () => {
  const outlets = new FaultyOutlets();
  const { sink } = sinkTo(outlets);
  outlets.writeFaults = repeatFault(stalledOutlet);
  sink.write('last words\n');
  const onEnd = vi.fn();
  void sink.end(1_000).then(onEnd);
  await vi.advanceTimersByTimeAsync(900);
  expect(onEnd).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(200);
  expect(onEnd).toHaveBeenCalled();
  outlets.writeFaults = repeatFault(fullDisk);
  await sink.end(1_000);
});

test('LineSink lets a writer wait until the queue is empty or the time limit expires, and not at all after a timeout or while lines are lost', async () => {
  const outlets = new FaultyOutlets();
  const { sink } = sinkTo(outlets);
  expect(sink.waitForSpace(1_000)).toBeUndefined();
  outlets.writeFaults = repeatFault(stalledOutlet);
  sink.write(`${'x'.repeat(60)}\n`);
  const relieved = vi.fn();
  void sink.waitForSpace(1_000)?.then(relieved);
  await vi.advanceTimersByTimeAsync(900);
  expect(relieved).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(100);
  expect(relieved).toHaveBeenCalledTimes(1);
  // The first wait timed out, so the sink does not wait again.
  expect(sink.waitForSpace(1_000)).toBeUndefined();
  outlets.writeFaults = [];
  await vi.advanceTimersByTimeAsync(60);
  outlets.writeFaults = [stalledOutlet, stalledOutlet];
  sink.write(`${'x'.repeat(60)}\n`);
  void sink.waitForSpace(1_000)?.then(relieved);
  await vi.advanceTimersByTimeAsync(60);
  expect(relieved).toHaveBeenCalledTimes(2);
  outlets.writeFaults = repeatFault(stalledOutlet);
  for (let i = 0; i < 3; i++) sink.write(`${'x'.repeat(60)}\n`);
  expect(sink.waitForSpace(1_000)).toBeUndefined();
});

test('LineSink writes the header of a new file before other lines, and drops lines queued for the previous file', () => {
  const outlets = new FaultyOutlets();
  const sink = new LineSink({ open: outlets.open, begin: () => 'header\n' });
  const losses: (LineLoss | undefined)[] = [];
  sink.listen({ recovered: (loss) => void losses.push(loss) });
  outlets.openFaults = [fullDisk];
  sink.write('early\n');
  vi.advanceTimersByTime(100);
  sink.write('one\n');
  outlets.moveAway();
  sink.write('two\n');
  outlets.writeFaults = [{ maxBytes: 2 }, fullDisk];
  sink.write('three\n');
  outlets.moveAway();
  sink.write('four\n');
  vi.advanceTimersByTime(1_000);
  expect(outlets.files).toEqual(['header\none\n', 'header\ntwo\nth', 'header\n']);
  expect(losses).toMatchObject([{ lines: 1 }, { lines: 2 }]);
});

const maxLineBytes = 70;
const code = fc.constantFrom('ENOSPC', 'EPIPE', 'EIO', 'ENXIO', 'EACCES');
const fault: fc.Arbitrary<Fault> = fc.oneof(fc.record({ maxBytes: fc.nat(30) }), fc.record({ code }));
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ does: fc.constant('write' as const), length: fc.nat(60) }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('pass' as const), ms: fc.nat(400) }) },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant('break' as const), faults: fc.array(fault, { maxLength: 8 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ does: fc.constant('refuse' as const), faults: fc.array(fault, { maxLength: 4 }) }),
  },
  { weight: 1, arbitrary: fc.constant({ does: 'move' as const }) },
);

test('LineSink never throws for any fault of the output, limits its memory, and counts every lost line', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 80 }), (steps) => {
      const outlets = new FaultyOutlets();
      const { sink } = sinkTo(outlets);
      let writtenCount = 0;
      for (const action of steps) {
        if (action.does === 'write') sink.write(`${writtenCount++}:${'.'.repeat(action.length)}\n`);
        if (action.does === 'pass') vi.advanceTimersByTime(action.ms);
        if (action.does === 'break') outlets.writeFaults.push(...action.faults);
        if (action.does === 'refuse') outlets.openFaults.push(...action.faults);
        if (action.does === 'move') outlets.moveAway();
        // A partially written line is buffered again in full for the next file.
        expect(sink.waitingBytes).toBeLessThanOrEqual(100 + maxLineBytes);
      }
      outlets.writeFaults = [];
      outlets.openFaults = [];
      vi.advanceTimersByTime(60_000);
      expect(sink.waitingBytes).toBe(0);
      // A file may end with half of the line that is complete in the next one.
      const lines = outlets.files.flatMap((text) => text.split('\n').slice(0, -1));
      let next = 0;
      for (const line of lines) {
        if (line.startsWith('lost ')) next += Number(line.slice(5));
        else expect(Number(/^(\d+):\.*$/.exec(line)?.[1])).toBe(next++);
      }
      expect(next).toBe(writtenCount);
      expect(sink.lost).toBe(writtenCount - lines.filter((line) => !line.startsWith('lost')).length);
      sink.close();
      expect(outlets.closed).toBe(outlets.opened);
    }),
    { numRuns: 2_000 },
  );
});
