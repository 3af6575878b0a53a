/** bin/pilot-agent as a container's first process, with scripted agents that exit or hang. */
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { temporaryFolder } from '../fixtures/real-envoy.ts';
import { eventually } from '../harness/eventually.ts';
import { Program } from '../harness/program.ts';

/** Shell commands of each agent, in the order of their starts. An agent without one exits with 0. */
function launched(
  agents: readonly string[],
  { newerAgentLimitS = 150, timersLingerS = 0, signalAtStart = '' } = {},
): Program {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const bin = join(folder.path, 'bin');
  for (const name of ['bin', 'dist']) mkdirSync(join(folder.path, name));
  const launcher = readFileSync(join(packageRoot(), 'bin/pilot-agent'), 'utf8');
  const slowLauncher = launcher
    .replace(/^newer_agent_limit=\d+$/m, `newer_agent_limit=${newerAgentLimitS}`)
    .replace(/^( +\{ sleep .*; kill -s ALRM \$\$;)/m, `$1 sleep ${timersLingerS};`)
    // Runs when the first agent has a process, and the launcher does not know its PID yet.
    .replace(/^ +CHARTPILOT_LAUNCHER=.* &$/m, (start) =>
      signalAtStart === '' ? start : `${start}\n  [ "$signalled" ] || { signalled=1; kill -s ${signalAtStart} $$; }`,
    )
    // The launcher numbers the agents, because the second of two agents that start together may run first.
    .replace(/^ +(?=CHARTPILOT_LAUNCHER=)/m, '  turn=$((turn + 1))\n  TURN=$turn ');
  writeFileSync(join(bin, 'pilot-agent'), slowLauncher);
  writeFileSync(join(bin, 'find-node.sh'), 'node=$root/bin/agent\n');
  writeFileSync(join(folder.path, 'dist/pilot-agent.mjs'), '');
  // Without signal handlers, the launcher's `handles_signals` would wait.
  writeFileSync(
    join(bin, 'agent'),
    `#!/bin/sh
trap : HUP USR1
trap 'exit 0' TERM
[ -f "$FOLDER/agent-$TURN" ] || exit 0
. "$FOLDER/agent-$TURN"
`,
  );
  for (const name of ['pilot-agent', 'agent']) chmodSync(join(bin, name), 0o755);
  agents.forEach((script, index) => {
    writeFileSync(join(folder.path, `agent-${index + 1}`), script);
  });
  symlinkSync(join(bin, 'pilot-agent'), join(folder.path, 'launcher'));
  const program = Program.run('the launcher', 'unshare', {
    args: ['--pid', '--fork', '--kill-child', '--mount', '--mount-proc', join(folder.path, 'launcher'), 'proxy'],
    cwd: folder.path,
    env: { ...process.env, FOLDER: folder.path, LIVE_RESTORE: 'true' },
  });
  onTestFinished(async () => {
    if (program.exit === undefined) process.kill(program.pid, 'SIGKILL');
    await program.exited.catch(() => {});
  });
  return program;
}

const dies = 'kill -s KILL $$';
const hangs = 'while :; do sleep 1; done';
const times = <A>(count: number, one: A): A[] => new Array<A>(count).fill(one);

test('the launcher stops all Envoys and exits after ten consecutive agents are killed within two seconds of their start', async () => {
  const envoy = `trap 'echo told' TERM; echo runs; : >runs; ${hangs}`;
  const first = `sh -c "${envoy}" & until [ -f runs ]; do sleep 0.05; done; ${dies}`;
  const program = launched([first, ...times(20, dies)]);
  expect(await program.exited).toEqual({ code: 137, signal: null });
  expect(program.lines.filter((line) => line === 'told')).toHaveLength(1);
  const message = expect.stringContaining('pilot-agent: ten agents were killed within two seconds of their start');
  expect(program.lines).toContainEqual(message);
});

test('an agent that hands over and exits normally resets the count of killed agents', async () => {
  const program = launched([...times(9, dies), 'exit 75', ...times(9, dies), 'echo the last; exit 0']);
  expect(await program.exited).toEqual({ code: 0, signal: null });
  expect(program.lines).toContain('the last');
});

test.each(['USR2', 'HUP', 'USR1', 'ALRM'])(
  'SIG%s during the start of an agent does not end the launcher, and is not treated as the agent’s exit',
  async (signal) => {
    const program = launched(['echo first; sleep 2; exit 9'], { signalAtStart: signal });
    expect(await program.exited).toEqual({ code: 9, signal: null });
    expect(program.lines).toContain('first');
  },
);

test('the launcher responds to each command that arrives while it handles another', async () => {
  const program = launched(['echo first; while :; do sleep 0.1; done', `echo newer; kill -s USR2 1; ${hangs}`]);
  await program.line(/first/);
  const launcher = await eventually('the launcher', () => firstChildOf(program.pid));
  process.kill(launcher, 'SIGUSR2');
  await program.line(/newer/);
  await program.line(/SIGUSR2 ignored: an agent is being replaced/);
  process.kill(launcher, 'SIGTERM');
  expect(await program.exited).toEqual({ code: 0, signal: null });
});

test('the launcher kills a newer agent that hangs before it can decide, and another replacement can be requested', async () => {
  const program = launched(
    // A second is short: an agent may be killed before it has logged anything.
    [`kill -s USR2 1; ${hangs}`, hangs, ...times(9, 'echo another one; exit 1')],
    { newerAgentLimitS: 1 },
  );
  await program.line(/killing the newer agent, which did not take over in time/);
  const launcher = await eventually('the launcher', () => firstChildOf(program.pid));
  // The launcher ignores SIGUSR2 until the kernel has removed the killed process.
  await eventually(
    'another one is started',
    () => program.lines.includes('another one') || !process.kill(launcher, 'SIGUSR2'),
    { everyMs: 300 },
  );
  process.kill(launcher, 'SIGTERM');
  expect(await program.exited).toEqual({ code: 0, signal: null });
});

test('a newer agent that hangs after another one exited has the same deadline even if a timer fires late', async () => {
  const program = launched(['echo first; while :; do sleep 0.1; done', 'echo second; exit 1', `echo third; ${hangs}`], {
    newerAgentLimitS: 6,
    timersLingerS: 60,
  });
  await program.line(/first/);
  const launcher = await eventually('the launcher', () => firstChildOf(program.pid));
  process.kill(launcher, 'SIGUSR2');
  await program.line(/second/);
  await sleep(1_500);
  process.kill(launcher, 'SIGUSR2');
  await program.line(/third/);
  const since = performance.now();
  await program.line(/killing the newer agent, which did not take over in time/);
  expect(performance.now() - since).toBeLessThan(30_000);
  process.kill(launcher, 'SIGTERM');
  expect(await program.exited).toEqual({ code: 0, signal: null });
});

test('the launcher kills an older agent that hangs after its hand-over, and the deciding agent continues', async () => {
  // Names of this form are unique to this test's agents.
  const decides = `exec python3 -c 'import signal, socket, sys, time
signal.signal(signal.SIGHUP, lambda *_: None)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
held = socket.socket(socket.AF_UNIX); held.bind("\\0chartpilot_base_id_${process.pid}_in_${Date.now().toString(16)}"); held.listen()
print("decides", flush=True)
while True: time.sleep(1)'`;
  // On a busy machine an agent may not start in time and counts as hanging; then another one starts.
  const olderProgram = 'while :; do kill -s USR2 1; sleep 1; done';
  const program = launched([olderProgram, ...times(8, decides)], { newerAgentLimitS: 10 });
  await program.line(/killing the older agent, which did not exit after its hand-over/);
  const launcher = await eventually('the launcher', () => firstChildOf(program.pid));
  await eventually('one agent is left', () => childrenOf(launcher).length === 1);
  process.kill(launcher, 'SIGTERM');
  expect(await program.exited).toEqual({ code: 0, signal: null });
});

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
const firstChildOf = (pid: number): number | undefined => childrenOf(pid)[0];
