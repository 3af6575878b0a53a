import { expect, it } from 'vitest';
import { outcomesOf, summaryOf, unprovenFeatures } from './report.ts';

const output = `requires HTTPRouteWeight [Gateway HTTPRoute]
requires HTTPRouteCORS [Gateway HTTPRouteCORS]
requires UDPRoute [UDPRoute]
=== RUN   TestConformance
--- FAIL: TestConformance (1.00s)
    --- PASS: TestConformance/HTTPRouteWeight (0.50s)
        --- PASS: TestConformance/HTTPRouteWeight/part (0.20s)
    --- FAIL: TestConformance/HTTPRouteCORS (0.50s)
        --- PASS: TestConformance/HTTPRouteCORS/part (0.20s)
    --- SKIP: TestConformance/UDPRoute (0.00s)
`;

it('the report contains the outcome of each test, without subtests', () => {
  expect([...outcomesOf(output)]).toEqual([
    ['HTTPRouteWeight', 'PASS'],
    ['HTTPRouteCORS', 'FAIL'],
    ['UDPRoute', 'SKIP'],
  ]);
});

it('a feature is unproven unless a test that requires it has passed', () => {
  expect(unprovenFeatures(output, ['Gateway', 'HTTPRoute', 'HTTPRouteCORS', 'UDPRoute', 'Unknown'])).toEqual([
    ...['HTTPRouteCORS', 'UDPRoute', 'Unknown'],
  ]);
});

it('the summary names failed tests and unproven features, and counts the tests', () => {
  expect(summaryOf(outcomesOf(output), ['UDPRoute'])).toBe(
    'FAIL HTTPRouteCORS\nUNPROVEN UDPRoute: no test of this feature has passed\n1 passed, 1 failed, 1 skipped',
  );
});
