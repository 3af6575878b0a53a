/** SIGUSR1 sent directly to Envoy, as by log rotation; also to a parent in its shutdown, which no longer handles it. */
import { expect, onTestFinished, test } from 'vitest';
import { respondingBootstrap } from '../fixtures/responding-bootstrap.ts';
import { envoysIn, readyAgent } from '../harness/contained-agent.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { loggedLine } from '../harness/logged-line.ts';
import { Program } from '../harness/program.ts';
import { traceEvidence } from '../harness/trace-evidence.ts';
import { startLoad } from '../load/load-process.ts';
import { formatReport } from '../load/report.ts';

/** Sends SIGUSR1 to a process each millisecond until it has exited. */
const rotation = `import os, signal, sys, time
pid = int(sys.argv[1])
try:
  while True:
    os.kill(pid, signal.SIGUSR1)
    time.sleep(0.001)
except ProcessLookupError: pass`;

test('SIGUSR1 that kills a parent during its shutdown fails no request, and the child keeps serving', async () => {
  const [port = 0] = await freePorts(1);
  const agent = await readyAgent(['--drainDuration', '1s', '--parentShutdownDuration', '2s'], {
    bootstrap: (folder, adminPort) => respondingBootstrap(folder, adminPort, port),
  });
  const { container } = agent;
  const load = await startLoad({
    target: { host: '127.0.0.1', port, authority: 'localhost' },
    clients: [
      { kind: 'ka', count: 1, pauseMs: 5 },
      { kind: 'new', count: 1, pauseMs: 10 },
    ],
    maxDurationMs: 80_000,
  });
  onTestFinished(() => load.kill());
  let parents = 0;
  // On a busy machine all signals may arrive before or after the relevant milliseconds.
  await eventually('SIGUSR1 has killed a parent', async () => {
    const [parent] = envoysIn(agent);
    container.signal('SIGHUP');
    const epoch = `epoch-${++parents}`;
    await container.program.line(loggedLine('restart.ended.live', { epoch }));
    const rotating = Program.run('log rotation', 'python3', {
      ...{ args: ['-c', rotation, String(parent)], cwd: '/', env: process.env },
    });
    onTestFinished(() => void (rotating.exit ?? process.kill(rotating.pid, 'SIGKILL')));
    await rotating.exited;
    await eventually('the agent has seen its exit', () => exitsOf(container.program.lines, parents - 1).length > 0);
    return exitsOf(container.program.lines, parents - 1).some((line) => line.includes('SIGUSR1'));
  });
  // The agent would immediately replace a child that it considered doomed.
  const starts = (): number => container.program.lines.filter((line) => line.includes('Envoy is live')).length;
  const previousStarts = starts();
  container.signal('SIGHUP');
  await eventually('the next start is over', () => starts() > previousStarts);
  const report = await load.stop();
  const evidence = traceEvidence([`${container.cwd}/agent.trace`], container.program.lines);
  expect(report.failed, report.failed === 0 ? '' : `${formatReport(report)}\n${evidence}`).toBe(0);
  expect(container.program.lines.filter((line) => line.includes('parent died early'))).toEqual([]);
});

const exitsOf = (lines: readonly string[], epoch: number): string[] =>
  lines.filter((line) => line.includes(`epoch-${epoch}: draining → exited`));
