/** Results of the suite: lines of `go test -v`, and a line `requires TEST [FEATURE …]` for each test. */
export type TestOutcome = 'PASS' | 'FAIL' | 'SKIP';

/** Outcomes of tests, without subtests. */
export function outcomesOf(output: string): ReadonlyMap<string, TestOutcome> {
  const outcomes = new Map<string, TestOutcome>();
  for (const [, outcome, name] of output.matchAll(/^\s*--- (PASS|FAIL|SKIP): TestConformance\/([^/\s]+) /gm)) {
    outcomes.set(name!, outcome as TestOutcome);
  }
  return outcomes;
}

/** Claimed features without a passed test. */
export function unprovenFeatures(output: string, claimedFeatures: readonly string[]): readonly string[] {
  const outcomes = outcomesOf(output);
  const proven = new Set<string>();
  for (const [, test, features] of output.matchAll(/^requires (\S+) \[(.*)\]$/gm)) {
    if (outcomes.get(test!) === 'PASS') for (const feature of features!.split(' ')) proven.add(feature);
  }
  return claimedFeatures.filter((feature) => !proven.has(feature));
}

/** Failed tests, claimed features without a test, and a line of counts. */
export function summaryOf(outcomes: ReadonlyMap<string, TestOutcome>, unproven: readonly string[]): string {
  const namesWith = (expected: TestOutcome): string[] =>
    [...outcomes].filter(([, outcome]) => outcome === expected).map(([name]) => name);
  const failedNames = namesWith('FAIL');
  return [
    ...failedNames.map((name) => `FAIL ${name}`),
    ...unproven.map((feature) => `UNPROVEN ${feature}: no test of this feature has passed`),
    `${namesWith('PASS').length} passed, ${failedNames.length} failed, ${namesWith('SKIP').length} skipped`,
  ].join('\n');
}
