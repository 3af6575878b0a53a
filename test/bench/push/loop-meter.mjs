/**
 * Loaded into a server before it starts. On SIGUSR2 it writes the delays of the event loop since the last signal, in
 * milliseconds, to the file LOOP_METER_FILE.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const file = process.env.LOOP_METER_FILE;
/** Interval of the timer in milliseconds. It is not part of the delay. */
const resolution = 1;
const delays = monitorEventLoopDelay({ resolution });
delays.enable();

process.on('SIGUSR2', () => {
  const ms = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - resolution);
  const { count, max } = delays;
  const delaysInMs = { count, p99: ms(delays.percentile(99)), p999: ms(delays.percentile(99.9)), max: ms(max) };
  // A rename lets readers see the complete file or none.
  writeFileSync(`${file}.new`, JSON.stringify(delaysInMs));
  renameSync(`${file}.new`, file);
  delays.reset();
});
