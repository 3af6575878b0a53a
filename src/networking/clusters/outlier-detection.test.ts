import { expect, it } from 'vitest';
import { outlierDetection } from './outlier-detection.ts';

it('a threshold of 0 disables the check', () => {
  expect(outlierDetection({ consecutive5xxErrors: 0, consecutiveGatewayErrors: 3 })).toMatchObject({
    enforcingConsecutive5xx: 0,
    enforcingConsecutiveGatewayFailure: 100,
    enforcingSuccessRate: 0,
  });
});

it('an ejection percentage of 0 is omitted, because Envoy would never eject an endpoint', () => {
  expect(outlierDetection({ maxEjectionPercent: 30 }).maxEjectionPercent).toBe(30);
  expect(outlierDetection({ maxEjectionPercent: 0 }).maxEjectionPercent).toBeUndefined();
});
