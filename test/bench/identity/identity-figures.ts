/** Figures of `npm run bench:identity` and their goals, for two otherwise idle cores. */

export interface IdentityFigures {
  readonly certificatesPerSecond: number;
  readonly serverCpuMsPerCertificate: number;
  readonly pushMs: number;
  readonly pushP99Ms: number;
  readonly pushBesideSigningMs: number;
  readonly pushBesideSigningP99Ms: number;
  readonly certificatesPerSecondBesidePushes: number;
  readonly agentsMedianMs: number;
  readonly agentsLastMs: number;
  readonly agentsToldToComeAgain: number;
  readonly secretAnswerMs: number;
  readonly secretAnswerP99Ms: number;
  readonly agentRssMib: number;
  readonly agentRssAfterStreamsMib: number;
}

export interface IdentityGoal {
  readonly figureName: string;
  readonly expected: string;
  readonly measured: number;
  readonly isMet: boolean;
}

export function goalsOf(figures: IdentityFigures): IdentityGoal[] {
  const grownMs = figures.pushBesideSigningP99Ms - figures.pushP99Ms;
  return [
    minGoal('certificates signed a second', figures.certificatesPerSecond, 500),
    maxGoal('milliseconds by which p99 of pushes grows beside signing', grownMs, 50),
    maxGoal(
      'milliseconds until the last agent of those that come back at once is served',
      figures.agentsLastMs,
      60_000,
    ),
    maxGoal('milliseconds until the agent answers for a secret, median', figures.secretAnswerMs, 5),
    maxGoal('MiB of the agent with secrets and the XDS proxy in use', figures.agentRssMib, 70),
  ];
}

/** A missing figure does not meet its goal. */
function minGoal(figureName: string, value: number, limit: number): IdentityGoal {
  return { figureName, expected: `at least ${limit}`, measured: value, isMet: value >= limit };
}

function maxGoal(figureName: string, value: number, limit: number): IdentityGoal {
  return { figureName, expected: `at most ${limit}`, measured: value, isMet: value <= limit };
}
