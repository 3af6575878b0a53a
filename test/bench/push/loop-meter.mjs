/**
 * Loaded into a server before it starts: on SIGUSR2 it writes how late its event loop was since the last time, in
 * milliseconds, to the file that LOOP_METER_FILE names.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const file = process.env.LOOP_METER_FILE;
/** A timer of so many milliseconds is looked at: its own length is no delay. */
const resolution = 1;
const delays = monitorEventLoopDelay({ resolution });
delays.enable();

process.on('SIGUSR2', () => {
  const ms = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - resolution);
  const { count, max } = delays;
  const said = { count, p99: ms(delays.percentile(99)), p999: ms(delays.percentile(99.9)), max: ms(max) };
  // Whoever waits for it sees the whole file or none.
  writeFileSync(`${file}.new`, JSON.stringify(said));
  renameSync(`${file}.new`, file);
  delays.reset();
});
