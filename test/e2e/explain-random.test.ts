/** explain and a real Envoy agree on random requests for the golden cases: outcome, status and response flag. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import type { CaseResult } from '../explained/drive.ts';
import { inNamespace } from '../explained/namespace.ts';
import { requireIptables } from '../harness/iptables.ts';
import { sized } from '../harness/size-of-run.ts';
import { caseNames } from '../networking/case.ts';

/** One case for each kind of decision; each costs the start of an Envoy. */
const shortCases = [
  'authorization',
  'claims',
  'gateway-api',
  'overlapping-gateway',
  'sidecar-redirect',
  'virtual-service',
];
const { cases, requests, seed } = sized({
  short: { cases: shortCases, requests: 20, seed: 3 },
  full: { cases: caseNames(), requests: 50, seed: 11 },
});
/** Maximum share of requests that explain does not decide. */
const maxNotDecidedShare = 0.05;

let results: readonly CaseResult[] = [];

beforeAll(async () => {
  requireIptables();
  const script = new URL('../explained/run.ts', import.meta.url).pathname;
  const options = ['--cases', cases.join(), '--requests', String(requests), '--seed', String(seed)];
  const { command, args } = inNamespace(process.execPath, [script, '--inside', ...options]);
  const { stdout } = await promisify(execFile)(command, args, { maxBuffer: 64 * 2 ** 20 });
  results = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as CaseResult);
}, 900_000);

describe('explain with random requests', () => {
  it.each(cases)('agrees with a real Envoy in the golden case "%s"', (name) => {
    const result = results.find((one) => one.name === name);
    expect(result?.differences).toEqual([]);
    expect(result?.compared).toBe(requests);
  });

  it('leaves at most 5 % of the requests undecided', () => {
    const notDecided = results.flatMap((result) => Object.values(result.notDecided)).reduce((sum, one) => sum + one, 0);
    expect(notDecided / (cases.length * requests)).toBeLessThanOrEqual(maxNotDecidedShare);
  });

  it('decides each kind of outcome at least once', () => {
    const kinds = new Set(results.flatMap(({ outcomes }) => Object.keys(outcomes)));
    const expected = [
      'answered',
      'closed',
      'denied',
      'divided',
      'forwarded',
      'malformed',
      'no cluster',
      'no endpoints',
      'no route',
    ];
    expect(expected.filter((kind) => !kinds.has(kind))).toEqual([]);
  });
});
