/** Cost of tracing. Pure. */

export interface DebuggerRun {
  /** Additional CPU time as a share of one core, compared with the same agent without a trace. */
  readonly steadyShare: number;
  readonly stormShare: number;
  /** Number of each agent's hot restarts during the restart storm. */
  readonly stormRestarts: readonly number[];
  readonly connections: number;
  /** CPU time of the control plane for one push to all connections, in milliseconds. */
  readonly pushCpuMs: number;
  readonly pushRecords: number;
  /** CPU time of one record of that push. */
  readonly recordCostUs: number;
}

/** `steady` and `storm` are shares of one core, `push` is a share of a push. */
export const goals = { steady: 0.01, storm: 0.05, push: 0.03 } as const;

/** Cost of the records of a push, as a share of its CPU time. */
export const pushShare = ({ pushRecords, recordCostUs, pushCpuMs }: DebuggerRun): number =>
  (pushRecords * recordCostUs) / 1_000 / pushCpuMs;

/** Returns one sentence per missed goal. */
export function problemsOf(run: DebuggerRun): string[] {
  const [traced = 0, plain = 0] = run.stormRestarts;
  return [
    ...missed('tracing an agent that has nothing to do', run.steadyShare, goals.steady, 'of a core'),
    ...missed('tracing an agent in a restart storm', run.stormShare, goals.storm, 'of a core'),
    ...missed('recording a push', pushShare(run), goals.push, "of the push's CPU"),
    ...(Math.min(traced, plain) < 2 ? [`no storm: ${traced} and ${plain} restarts`] : []),
    ...(run.pushCpuMs > 0 ? [] : ['the push took no CPU that could be measured']),
  ];
}

/** Formats the last line of the output. */
export function formatDebuggerRun(run: DebuggerRun): string {
  const { stormRestarts, connections, pushCpuMs, pushRecords, recordCostUs } = run;
  return [
    `tracing costs an agent ${percent(run.steadyShare)} of a core in steady state (goal ${percent(goals.steady)})`,
    `${percent(run.stormShare)} in a storm of ${stormRestarts[0]} restarts (goal ${percent(goals.storm)})`,
    `a push to ${connections} connections: ${pushRecords} records × ${recordCostUs.toFixed(1)} µs = ` +
      `${percent(pushShare(run))} of ${pushCpuMs.toFixed(0)} ms CPU (goal ${percent(goals.push)})`,
  ].join('; ');
}

function missed(subject: string, share: number, goal: number, unit: string): string[] {
  return share < goal ? [] : [`${subject} costs ${percent(share)} ${unit}, the goal is ${percent(goal)}`];
}

const percent = (share: number): string => `${(share * 100).toFixed(2)} %`;
