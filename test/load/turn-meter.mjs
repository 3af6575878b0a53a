/**
 * Preloaded into a server: measures the turns of its event loop in CPU time of its thread, which other programs of the machine do not lengthen. On
 * SIGUSR2 it prints the durations since the last signal.
 */
const minMs = 1;

let last = process.threadCpuUsage();
let turns = [];

function measure() {
  const now = process.threadCpuUsage();
  const ms = (now.user + now.system - last.user - last.system) / 1_000;
  last = now;
  if (ms >= minMs) turns.push(ms);
  setTimeout(() => setImmediate(measure), 0).unref();
}

measure();

process.on('SIGUSR2', () => {
  turns.sort((a, b) => a - b);
  const at = (share) => (turns[Math.max(0, Math.ceil(turns.length * share) - 1)] ?? 0).toFixed(1);
  const sum = turns.reduce((total, ms) => total + ms, 0).toFixed(0);
  process.stderr.write(`turns: ${turns.length} p99 ${at(0.99)} longest ${at(1)} sum ${sum}\n`);
  turns = [];
});
