import { expect, it } from 'vitest';
import { outlierDetection } from './outlier-detection.ts';

it('a threshold of 0 switches its check off', () => {
  expect(outlierDetection({ consecutive5xxErrors: 0, consecutiveGatewayErrors: 3 })).toMatchObject({
    enforcingConsecutive5xx: 0,
    enforcingConsecutiveGatewayFailure: 100,
    enforcingSuccessRate: 0,
  });
});

it('a share of endpoints of 0 is none that is said: Envoy would never take one out', () => {
  expect(outlierDetection({ maxEjectionPercent: 30 }).maxEjectionPercent).toBe(30);
  expect(outlierDetection({ maxEjectionPercent: 0 }).maxEjectionPercent).toBeUndefined();
});
