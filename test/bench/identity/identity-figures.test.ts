import { expect, it } from 'vitest';
import { goalsOf, type IdentityFigures } from './identity-figures.ts';

const passingFigures: IdentityFigures = {
  certificatesPerSecond: 500,
  serverCpuMsPerCertificate: 1,
  pushMs: 20,
  pushP99Ms: 40,
  pushBesideSigningMs: 30,
  pushBesideSigningP99Ms: 90,
  certificatesPerSecondBesidePushes: 400,
  agentsMedianMs: 1_000,
  agentsLastMs: 60_000,
  agentsToldToComeAgain: 0,
  secretAnswerMs: 5,
  secretAnswerP99Ms: 20,
  agentRssMib: 70,
  agentRssAfterStreamsMib: 90,
};

it('a goal is met when the figure equals its limit', () => {
  expect(goalsOf(passingFigures).filter(({ isMet }) => !isMet)).toEqual([]);
});

it.each<[keyof IdentityFigures, number, RegExp]>([
  ['certificatesPerSecond', 499.9, /signed a second/],
  ['pushBesideSigningP99Ms', 90.1, /p99 of pushes/],
  ['pushP99Ms', 39.9, /p99 of pushes/],
  ['agentsLastMs', 60_001, /last agent/],
  ['secretAnswerMs', 5.1, /answers for a secret/],
  ['agentRssMib', 70.1, /MiB of the agent/],
  ['agentRssMib', Number.NaN, /MiB of the agent/],
])('one goal is missed if %s is %d', (figure, value, pattern) => {
  const missed = goalsOf({ ...passingFigures, [figure]: value }).filter(({ isMet }) => !isMet);
  expect(missed.map((goal) => goal.figureName)).toEqual([expect.stringMatching(pattern)]);
});
